import { Component } from "preact";
import { rateText } from "../../../src/view/amounts.js";
import { countText } from "../../../src/words.js";
import { type Host, usedPerSecond } from "../state/host.js";
import { NextStart } from "./nextStart.js";
import { reasonText } from "./reasonText.js";
import { StateWord } from "./stateMark.js";

/** One line of the list. */
export interface HostLineProps {
  readonly host: Host;
  /** Its place in the whole list, from 0. */
  readonly index: number;
  readonly topPx: number;
  readonly isActive: boolean;
  readonly isSelected: boolean;
  readonly onOpen: (domain: string) => void;
}

/** A host in the list: a line of the table, or a card where the page is narrow. It is drawn again only when something of it has changed. */
export class HostLine extends Component<HostLineProps> {
  override shouldComponentUpdate(next: HostLineProps): boolean {
    const { host, index, topPx, isActive, isSelected } = this.props;
    return (
      next.host !== host ||
      next.index !== index ||
      next.topPx !== topPx ||
      next.isActive !== isActive ||
      next.isSelected !== isSelected
    );
  }

  override render() {
    const { host, index, topPx, isActive, isSelected, onOpen } = this.props;
    const look = ["line", `is-${host.state}`, isActive ? "active" : "", isSelected ? "selected" : ""].join(" ");
    return (
      // biome-ignore lint/a11y/useSemanticElements: a table element cannot be a list of which only a part exists
      // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names its active row
      // biome-ignore lint/a11y/useKeyWithClickEvents: the grid hears the keys
      <div
        id={`host-${index}`}
        role="row"
        class={look}
        aria-rowindex={index + 2}
        aria-selected={isSelected}
        style={{ transform: `translateY(${topPx}px)` }}
        onClick={() => onOpen(host.domain)}
      >
        <Cell column="domain" index={1} isHead>
          <span class="name" title={host.domain}>
            {host.domain}
          </span>
          <span class="why">{host.reason === null ? host.limits : reasonText(host.domain, host.reason)}</span>
        </Cell>
        <Cell column="state" index={2}>
          <StateWord state={host.state} />
        </Cell>
        <Cell column="perSecond number" index={3}>
          <Rate host={host} />
        </Cell>
        <Cell column="waiting number" index={4} label="waiting" isQuiet={host.waiting === 0}>
          {countText(host.waiting)}
        </Cell>
        <Cell column="nextStart number" index={5} label="next" isQuiet={host.nextAtMs === null && host.until === null}>
          <NextStart host={host} />
        </Cell>
        <Cell column="inFlight number" index={6} isQuiet={host.inFlight === 0}>
          {countText(host.inFlight)}
        </Cell>
        <Cell column="total number" index={7}>
          {countText(host.total)}
        </Cell>
        <Cell column="throttled number" index={8} isQuiet={host.throttled === 0}>
          {countText(host.throttled)}
        </Cell>
      </div>
    );
  }
}

interface CellProps {
  readonly column: string;
  readonly index: number;
  /** Shown on cards, which have no head line. */
  readonly label?: string;
  readonly isHead?: boolean;
  readonly isQuiet?: boolean;
  readonly children: preact.ComponentChildren;
}

function Cell({ column, index, label, isHead = false, isQuiet = false, children }: CellProps) {
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles have a column index
    <div
      role={isHead ? "rowheader" : "gridcell"}
      aria-colindex={index}
      class={`cell ${column} ${isQuiet ? "quiet" : ""}`}
    >
      {label === undefined ? null : <span class="label">{label} </span>}
      {children}
    </div>
  );
}

/** What is used of what is allowed, as numbers and as a bar. */
function Rate({ host }: { readonly host: Host }) {
  const { allowedPerSecond } = host;
  const perSecond = usedPerSecond(host);
  const share = allowedPerSecond === null ? 0 : Math.min(1, perSecond / allowedPerSecond);
  return (
    <span class="rate">
      <span class={perSecond === 0 ? "quiet" : ""}>{rateText(perSecond).replace("/s", "")}</span>
      {allowedPerSecond === null ? null : <span class="of"> of {rateText(allowedPerSecond)}</span>}
      <span class="gauge" aria-hidden="true">
        <span style={{ transform: `scaleX(${share.toFixed(3)})` }} />
      </span>
    </span>
  );
}
