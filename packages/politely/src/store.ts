import "./shareLimiter.js";

export { cellStore } from "./stores/cellStore.js";
export type { Bell, CellChange, Cells, CellWrite, ChangeCells } from "./stores/cells.js";
