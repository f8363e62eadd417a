import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Timeline } from "../../../src/serve/feed/row.js";
import { rateText } from "../../../src/view/amounts.js";
import { countText } from "../../../src/words.js";
import { usePolled } from "../state/hooks.js";

/** Whose timeline. */
export interface TimelineChartProps {
  /** Undefined: all hosts together. */
  readonly domain?: string;
  readonly heightPx: number;
}

/** A limit this many times above the highest second is named and not drawn: it would press the starts flat. */
const FAR_ABOVE = 4;

/** Starts of the last two minutes, second by second, against what the limits allow. */
export function TimelineChart({ domain, heightPx }: TimelineChartProps) {
  const path = domain === undefined ? "v1/timeline" : `v1/timeline/${encodeURIComponent(domain)}`;
  const { value } = usePolled<Timeline>(path, 1_000);
  const colours = useColours();
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const shown = value === undefined ? undefined : numbersOf(value);

  useEffect(() => {
    const box = place.current;
    if (box === null) return undefined;
    const made = new uPlot(optionsOf(colours, box.clientWidth, heightPx), [[], [], [], []], box);
    chart.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height: heightPx }));
    observer.observe(box);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = undefined;
    };
  }, [colours, heightPx]);

  useEffect(() => {
    if (shown !== undefined) chart.current?.setData(shown.columns);
  }, [value, colours, heightPx]);

  return (
    <figure class="timeline">
      <figcaption>
        <span>{domain === undefined ? "Starts a second, all hosts" : "Starts a second"}</span>
        <span class="keys">
          <span class="key starts">starts</span>
          <span class="key limit">{limitText(value?.allowedPerSecond, shown?.isLimitDrawn)}</span>
          <span class="key bad">429s</span>
        </span>
      </figcaption>
      <div ref={place} class="plot" role="img" aria-label={summary(value)} style={{ height: `${heightPx}px` }} />
    </figure>
  );
}

function limitText(allowed: number | null | undefined, isDrawn: boolean | undefined): string {
  if (allowed === null) return "no limit";
  if (allowed === undefined || allowed === 0) return "limit";
  return isDrawn === false ? `limit ${rateText(allowed)}, above` : `limit ${rateText(allowed)}`;
}

/** The chart in a sentence. */
function summary(timeline: Timeline | undefined): string {
  if (timeline === undefined) return "Starts of the last two minutes: not known yet";
  const { starts, throttled, allowedPerSecond } = timeline;
  const sum = (list: readonly number[]): string => countText(list.reduce((all, count) => all + count, 0));
  const limit = allowedPerSecond === null ? "no limit" : `limit ${rateText(allowedPerSecond)}`;
  return `Last two minutes: ${sum(starts)} starts, at most ${countText(Math.max(...starts))} in a second, ${limit}, ${sum(throttled)} answers 429`;
}

function numbersOf({ fromMs, starts, throttled, allowedPerSecond }: Timeline) {
  // The last second is not over: it would always look like a fall.
  const whole = starts.slice(0, -1);
  const highest = Math.max(1, ...whole);
  const isLimitDrawn = allowedPerSecond !== null && allowedPerSecond <= FAR_ABOVE * highest;
  const columns: uPlot.AlignedData = [
    whole.map((_, index) => fromMs / 1_000 + index),
    whole,
    whole.map(() => (isLimitDrawn && allowedPerSecond > 0 ? allowedPerSecond : null)),
    throttled.slice(0, -1).map((count) => (count === 0 ? null : count)),
  ];
  return { columns, isLimitDrawn };
}

type Colours = Readonly<Record<"accent" | "fill" | "muted" | "line" | "bad", string>>;

const stepped = pathsOf(uPlot.paths.stepped?.({ align: 1 }));
const bars = pathsOf(uPlot.paths.bars?.({ size: [0.9, 6] }));

/** Builds of uPlot may leave path builders out; lines are drawn then. */
function pathsOf(paths: uPlot.Series.PathBuilder | undefined): { paths?: uPlot.Series.PathBuilder } {
  return paths === undefined ? {} : { paths };
}

function optionsOf(colours: Colours, width: number, height: number): uPlot.Options {
  const axis = { stroke: colours.muted, font: "11px system-ui, sans-serif", ticks: { show: false } };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 4, 0, 0],
    scales: {
      x: { time: true },
      y: { range: (_, _least, most) => [0, Math.max(1, most * 1.12)] },
      // Few among many starts would not be seen: they have a scale of their own.
      bad: { range: (_, _least, most) => [0, Math.max(4, most) * 1.6] },
    },
    axes: [
      { ...axis, size: 22, space: 80, grid: { show: false }, values: (_, splits) => splits.map(minuteText) },
      {
        ...axis,
        size: 38,
        space: 32,
        grid: { stroke: colours.line, width: 1 },
        values: (_, splits) => splits.map(wholeText),
      },
    ],
    series: [
      {},
      { stroke: colours.accent, fill: colours.fill, width: 1.5, points: { show: false }, ...stepped },
      { stroke: colours.muted, width: 1.25, dash: [5, 4], points: { show: false } },
      { scale: "bad", stroke: colours.bad, fill: colours.bad, width: 0, points: { show: false }, ...bars },
    ],
  };
}

/** Clock time of whole minutes and halves of them; the rest has none. */
function minuteText(seconds: number): string {
  return seconds % 30 === 0 ? new Date(seconds * 1_000).toTimeString().slice(0, 8) : "";
}

function wholeText(value: number): string {
  if (value >= 10_000) return `${countText(value / 1_000)}k`;
  return Number.isInteger(value) ? countText(value) : "";
}

/** The colours of the style sheet as a canvas takes them; read again when the theme changes. */
function useColours(): Colours {
  const [colours, setColours] = useState(readColours);
  useEffect(() => {
    const look = (): void => setColours(readColours());
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", look);
    const observer = new MutationObserver(look);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      media.removeEventListener("change", look);
      observer.disconnect();
    };
  }, []);
  return colours;
}

function readColours(): Colours {
  const probe = document.createElement("span");
  document.body.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    accent: colour("accent"),
    fill: colour("accent-wash"),
    muted: colour("muted"),
    line: colour("line"),
    bad: colour("cooling"),
  };
  probe.remove();
  return colours;
}
