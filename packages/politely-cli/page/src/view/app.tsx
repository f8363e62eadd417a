import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Feed } from "../state/feed.js";
import { useFeed } from "../state/hooks.js";
import { arrange, type SortColumn, type ViewChoice } from "../state/host.js";
import { Announcer } from "./announcer.js";
import { EmptyState } from "./emptyState.js";
import { HostDetail } from "./hostDetail.js";
import { COLUMNS, HostList, shownText } from "./hostList.js";
import { LinkState } from "./linkState.js";
import { pauseOrResume } from "./pauseControl.js";
import { SearchBar } from "./searchBar.js";
import { ThemeButton } from "./themeButton.js";
import { TimelineChart } from "./timelineChart.js";
import { TokenPrompt } from "./tokenPrompt.js";
import { StateFilter, Totals } from "./totals.js";

/** Hosts are put in order again this often, so that a line can be read before it moves. */
const ORDER_MS = 2_000;

/** The whole page. */
export function App({ feed }: { readonly feed: Feed }) {
  useFeed(feed);
  const [choice, setChoice] = useState<ViewChoice>({
    query: "",
    state: undefined,
    column: "state",
    isDescending: false,
  });
  const [selected, setSelected] = useState<string | undefined>(undefined);
  const order = useOrder(feed, choice);
  const { link, totals, opening, hosts } = feed;
  const isWritable = opening?.isWritable ?? false;
  const host = selected === undefined ? undefined : hosts.get(selected);

  const close = (): void => {
    setSelected(undefined);
    document.querySelector<HTMLElement>(".hosts")?.focus();
  };
  const pause = (domain: string): void => {
    const known = hosts.get(domain);
    // What goes wrong is said where the host is open; here the state simply stays.
    if (isWritable && known !== undefined) void pauseOrResume(known).catch(() => setSelected(domain));
  };
  useKeys({
    onEscape: host === undefined ? undefined : close,
    onPause: selected === undefined ? undefined : () => pause(selected),
  });

  if (link.kind === "token")
    return <TokenPrompt isRefused={link.isRefused} onToken={(token) => feed.useToken(token)} />;
  return (
    <div class={`page ${host === undefined ? "" : "with-detail"}`}>
      <header class="top">
        <h1>Politely</h1>
        <LinkState link={link} version={opening?.version ?? ""} onRetry={() => feed.connect()} />
        <ThemeButton />
      </header>
      <Announcer feed={feed} selected={selected} />
      <main>
        {totals === undefined ? null : (
          <div class="glance">
            <Totals totals={totals} />
            <TimelineChart heightPx={120} />
          </div>
        )}
        {totals === undefined || hosts.size === 0 ? null : (
          <div class="choose">
            <StateFilter
              hosts={totals.hosts}
              chosen={choice.state}
              onChoose={(state) => setChoice({ ...choice, state })}
            />
            <SearchBar choice={choice} onChoose={setChoice} shown={shownText(order.length, hosts.size)} />
          </div>
        )}
        {opening !== undefined && hosts.size === 0 ? <EmptyState /> : null}
        {hosts.size === 0 ? null : (
          <HostList
            hosts={hosts}
            order={order}
            choice={choice}
            selected={selected}
            onSort={(column) => setChoice(sortedBy(choice, column))}
            onOpen={setSelected}
            onPause={pause}
          />
        )}
        {hosts.size === 0 ? null : <Hints isWritable={isWritable} />}
      </main>
      {host === undefined ? null : <HostDetail host={host} isWritable={isWritable} onClose={close} />}
    </div>
  );
}

function Hints({ isWritable }: { readonly isWritable: boolean }) {
  const keys: readonly (readonly [string, string])[] = [
    ["/", "search"],
    ["↑ ↓", "move"],
    ["Enter", "open"],
    ["Esc", "close"],
    ...(isWritable ? [["p", "pause"] as const] : []),
  ];
  return (
    <p class="hints">
      {keys.map(([key, what]) => (
        <span key={key}>
          <kbd>{key}</kbd> {what}
        </span>
      ))}
    </p>
  );
}

/** A second press turns the order round; numbers begin with the largest. */
function sortedBy(choice: ViewChoice, column: SortColumn): ViewChoice {
  if (choice.column === column) return { ...choice, isDescending: !choice.isDescending };
  const isNumber = COLUMNS.find(({ id }) => id === column)?.isNumber === true;
  return { ...choice, column, isDescending: isNumber && column !== "nextStart" };
}

/** The order of the hosts: made at once for another choice or number of hosts, else every two seconds when something has changed. */
function useOrder(feed: Feed, choice: ViewChoice): readonly string[] {
  const made = useRef({ atMs: 0, version: -1 });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (made.current.version !== feed.version) setTurn((before) => before + 1);
    }, ORDER_MS);
    return () => window.clearInterval(timer);
  }, [feed]);
  return useMemo(() => {
    made.current = { atMs: performance.now(), version: feed.version };
    return arrange(feed.hosts.values(), choice);
  }, [feed, choice, turn, feed.hosts.size, feed.opening]);
}

interface Keys {
  readonly onEscape: (() => void) | undefined;
  readonly onPause: (() => void) | undefined;
}

/** Keys that work wherever the focus is, but not while somebody types. The list has its own. */
function useKeys({ onEscape, onPause }: Keys): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape" && onEscape !== undefined) onEscape();
      else if (isTyping(event.target)) return;
      else if (event.key === "/") document.querySelector<HTMLElement>("#search")?.focus();
      else if (event.key === "p" && onPause !== undefined) onPause();
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [onEscape, onPause]);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement
  );
}
