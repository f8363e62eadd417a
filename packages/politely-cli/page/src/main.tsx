import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/page.css";
import "./style/list.css";
import "./style/detail.css";
import "./style/narrow.css";
import { Feed } from "./state/feed.js";
import { applyTheme, readTheme } from "./state/theme.js";
import { App } from "./view/app.js";

applyTheme(readTheme());
const feed = new Feed();
feed.connect();
const place = document.getElementById("app");
if (place !== null) render(<App feed={feed} />, place);
