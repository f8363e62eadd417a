import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A real terminal without a screen: one program in a tmux server of its own. */
export class Terminal {
  readonly #folder = mkdtempSync(join(tmpdir(), "politely-tmux-"));

  /** Runs a shell command in `columns` times `rows`. The pane stays when it ends. Close it. */
  constructor(command: string, { columns, rows }: { readonly columns: number; readonly rows: number }) {
    const size = ["-x", String(columns), "-y", String(rows)];
    const environment = ["-e", "LANG=C.UTF-8", "-e", "TERM=screen-256color"];
    // `cat` keeps the pane open, and shows where the cursor was left.
    const shell = `unset CI NO_COLOR; ${command}; echo "exit code $?"; cat`;
    this.#tmux("new-session", "-d", ...size, ...environment, shell);
  }

  /** What is visible, without spaces at the ends of lines; with `history` what scrolled away, too. */
  lines({ history = false } = {}): readonly string[] {
    const text = this.#tmux("capture-pane", "-p", ...(history ? ["-S", "-"] : []));
    const lines = text.split("\n").map((line) => line.trimEnd());
    while (lines.at(-1) === "") lines.pop();
    return lines;
  }

  get cursor(): { readonly isVisible: boolean; readonly column: number; readonly row: number } {
    const [flag, column, row] = this.#tmux("display-message", "-p", "#{cursor_flag} #{cursor_x} #{cursor_y}").split(
      " ",
    );
    return { isVisible: flag === "1", column: Number(column), row: Number(row) };
  }

  /** The program that the pane's shell runs. */
  get childPid(): number {
    const shell = this.#tmux("display-message", "-p", "#{pane_pid}").trim();
    return Number(execFileSync("ps", ["-o", "pid=", "--ppid", shell], { encoding: "utf8" }).trim().split(/\s+/)[0]);
  }

  resize(columns: number, rows: number): void {
    this.#tmux("resize-window", "-x", String(columns), "-y", String(rows));
  }

  /** Presses a key, as tmux names it: `C-c`, `Enter`. */
  press(key: string): void {
    this.#tmux("send-keys", key);
  }

  /** Looks ten times a second until `isThere` says yes to what is visible. Throws with the last look after 30 s. */
  async until(isThere: (lines: readonly string[]) => boolean): Promise<readonly string[]> {
    for (let looks = 0; looks < 300; looks++) {
      const lines = this.lines();
      if (isThere(lines)) return lines;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`Not there after 30 s. The terminal shows:\n${this.lines().join("\n")}`);
  }

  close(): void {
    this.#tmux("kill-server");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #tmux(...args: readonly string[]): string {
    return execFileSync("tmux", ["-u", "-f", "/dev/null", "-S", join(this.#folder, "socket"), ...args], {
      encoding: "utf8",
    });
  }
}
