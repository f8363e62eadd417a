import type { SortColumn, ViewChoice } from "../state/host.js";
import { COLUMNS } from "./hostList.js";

/** What is chosen, and how many hosts that leaves. */
export interface SearchBarProps {
  readonly choice: ViewChoice;
  readonly onChoose: (choice: ViewChoice) => void;
  /** `"12 of 5,000 hosts"`. */
  readonly shown: string;
}

/** Search, and on narrow pages the order, which the head of the table has elsewhere. */
export function SearchBar({ choice, onChoose, shown }: SearchBarProps) {
  return (
    <search class="search">
      <input
        id="search"
        type="search"
        aria-label="Search hosts"
        placeholder="Search hosts"
        autocomplete="off"
        spellcheck={false}
        value={choice.query}
        onInput={(event) => onChoose({ ...choice, query: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key === "Escape" && choice.query !== "") {
            event.preventDefault();
            onChoose({ ...choice, query: "" });
          }
          if (event.key === "Enter" || event.key === "ArrowDown") {
            event.preventDefault();
            document.querySelector<HTMLElement>(".hosts")?.focus();
          }
        }}
      />
      <select
        class="narrow"
        aria-label="Sort by"
        value={choice.column}
        onChange={(event) => {
          const column = event.currentTarget.value as SortColumn;
          const isNumber = COLUMNS.find(({ id }) => id === column)?.isNumber === true;
          onChoose({ ...choice, column, isDescending: isNumber && column !== "nextStart" });
        }}
      >
        {COLUMNS.map(({ id, name }) => (
          <option key={id} value={id}>
            by {name.toLowerCase()}
          </option>
        ))}
      </select>
      <span class="shown" aria-live="polite">
        {shown}
      </span>
    </search>
  );
}
