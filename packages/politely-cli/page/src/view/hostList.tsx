import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { countText } from "../../../src/words.js";
import type { Host, SortColumn, ViewChoice } from "../state/host.js";
import { HostLine } from "./hostLine.js";

/** The columns in their order. `isNumber` ones stand at the right and are sorted from the top down first. */
export const COLUMNS: readonly { readonly id: SortColumn; readonly name: string; readonly isNumber: boolean }[] = [
  { id: "domain", name: "Host", isNumber: false },
  { id: "state", name: "State", isNumber: false },
  { id: "perSecond", name: "Starts/s", isNumber: true },
  { id: "waiting", name: "Waiting", isNumber: true },
  { id: "nextStart", name: "Next start", isNumber: true },
  { id: "inFlight", name: "In flight", isNumber: true },
  { id: "total", name: "Starts", isNumber: true },
  { id: "throttled", name: "429s", isNumber: true },
];

/** What the list shows, and whom it tells. */
export interface HostListProps {
  readonly hosts: ReadonlyMap<string, Host>;
  /** Names of the hosts to show, in order. */
  readonly order: readonly string[];
  readonly choice: ViewChoice;
  readonly selected: string | undefined;
  readonly onSort: (column: SortColumn) => void;
  readonly onOpen: (domain: string) => void;
  /** The key p, at a host. */
  readonly onPause: (domain: string) => void;
}

const LINE_PX = 34;
const CARD_PX = 68;
const NARROW = "(max-width: 719px)";
/** Lines drawn above and below what is seen. */
const SPARE = 6;
const STEP = 4;

/** Hosts in a list of any length: only the lines near the visible part exist. */
export function HostList(props: HostListProps) {
  const { hosts, order, selected, onOpen, onPause } = props;
  const grid = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState<string | undefined>(undefined);
  const isNarrow = useMedia(NARROW);
  const linePx = isNarrow ? CARD_PX : LINE_PX;
  const headPx = isNarrow ? 0 : LINE_PX;
  const { first, count } = useVisible(grid, linePx, order.length);
  const at = active === undefined ? -1 : order.indexOf(active);

  const move = (to: number): void => {
    const index = Math.max(0, Math.min(order.length - 1, to));
    setActive(order[index]);
    const box = grid.current;
    if (box === null) return;
    const top = index * linePx;
    const room = box.clientHeight - headPx;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + linePx > box.scrollTop + room) box.scrollTop = top + linePx - room;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== grid.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((grid.current?.clientHeight ?? 0) / linePx) - 1);
    const goal = {
      ArrowDown: at + 1,
      ArrowUp: Math.max(0, at - 1),
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: order.length - 1,
    };
    if (event.key in goal) move(goal[event.key as keyof typeof goal]);
    else if ((event.key === "Enter" || event.key === " ") && active !== undefined) onOpen(active);
    else if (event.key === "p" && active !== undefined) onPause(active);
    else return;
    event.preventDefault();
  };

  const lines = order.slice(first, first + count);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a table element cannot be a list of which only a part exists
    <div
      ref={grid}
      class="hosts"
      role="grid"
      aria-label="Hosts"
      aria-rowcount={order.length + 1}
      aria-colcount={COLUMNS.length}
      aria-activedescendant={at >= first && at < first + count ? `host-${at}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onFocus={(event) => {
        if (event.target === grid.current && at === -1 && order.length > 0) setActive(order[first]);
      }}
    >
      <HeadLine {...props} />
      {/* biome-ignore lint/a11y/useSemanticElements: see above */}
      <div class="lines" role="rowgroup" style={{ height: `${order.length * linePx}px` }}>
        {lines.map((domain, offset) => {
          const host = hosts.get(domain);
          if (host === undefined) return null;
          return (
            <HostLine
              // A line that leaves at one end is used again at the other: making new ones is what costs.
              key={(first + offset) % count}
              host={host}
              index={first + offset}
              topPx={(first + offset) * linePx}
              isActive={domain === active}
              isSelected={domain === selected}
              onOpen={(name) => {
                setActive(name);
                onOpen(name);
              }}
            />
          );
        })}
      </div>
      {order.length === 0 ? <NothingFits /> : null}
    </div>
  );
}

function HeadLine({ choice, onSort }: HostListProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see above
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names its active row
    <div class="head" role="row" aria-rowindex={1}>
      {COLUMNS.map(({ id, name, isNumber }, index) => {
        const isSorted = choice.column === id;
        const direction = choice.isDescending ? "descending" : "ascending";
        return (
          // biome-ignore lint/a11y/useSemanticElements: see above
          // biome-ignore lint/a11y/useFocusableInteractive: the button in it has the focus
          <div
            key={id}
            role="columnheader"
            aria-colindex={index + 1}
            aria-sort={isSorted ? direction : "none"}
            class={`cell ${id} ${isNumber ? "number" : ""}`}
          >
            <button type="button" onClick={() => onSort(id)}>
              {name}
              <span aria-hidden="true">{isSorted ? (choice.isDescending ? " ↓" : " ↑") : ""}</span>
            </button>
          </div>
        );
      })}
    </div>
  );
}

function NothingFits() {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see above
    // biome-ignore lint/a11y/useFocusableInteractive: there is nothing to do here
    <div role="row" class="nothing">
      {/* biome-ignore lint/a11y/useSemanticElements: see above */}
      {/* biome-ignore lint/a11y/useFocusableInteractive: see above */}
      <span role="gridcell">No host fits the search and the filter.</span>
    </div>
  );
}

/** Which lines are near the visible part of the list. */
function useVisible(grid: { readonly current: HTMLDivElement | null }, linePx: number, length: number) {
  const [range, setRange] = useState({ first: 0, count: 60 });
  useLayoutEffect(() => {
    const box = grid.current;
    if (box === null) return undefined;
    const look = (): void => {
      // In steps, so that not every line scrolled means drawing.
      const first = Math.max(0, Math.floor(box.scrollTop / linePx / STEP) * STEP - SPARE);
      const count = Math.ceil(box.clientHeight / linePx) + STEP + 2 * SPARE;
      setRange((before) => (before.first === first && before.count === count ? before : { first, count }));
    };
    look();
    box.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(box);
    return () => {
      box.removeEventListener("scroll", look);
      observer.disconnect();
    };
  }, [grid, linePx]);
  // A list that became shorter may end above what was seen.
  return { first: Math.max(0, Math.min(range.first, length - 1)), count: range.count };
}

function useMedia(query: string): boolean {
  const [fits, setFits] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const media = window.matchMedia(query);
    const look = (): void => setFits(media.matches);
    media.addEventListener("change", look);
    return () => media.removeEventListener("change", look);
  }, [query]);
  return fits;
}

/** How many hosts are shown, of how many. */
export function shownText(shown: number, all: number): string {
  return shown === all ? `${countText(all)} hosts` : `${countText(shown)} of ${countText(all)} hosts`;
}
