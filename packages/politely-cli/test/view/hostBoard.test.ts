import { describe, expect, it } from "vitest";
import type { HostProgress, HostWait } from "../../src/get/observer.js";
import { type BoardSource, HostBoard } from "../../src/view/hostBoard.js";

function host(key: string, changes: Partial<HostProgress> = {}): HostProgress {
  return { key, total: 100, done: 0, failed: 0, inFlight: 0, startsPerSec: 0, limit: "1/s", ...changes };
}

function source(hosts: readonly HostProgress[], waits = new Map<string, HostWait>()): BoardSource {
  return { hosts: () => hosts, waits: () => waits };
}

function keysOf(board: HostBoard, from: BoardSource, count: number, nowMs: number): readonly string[] {
  return board.show(from, count, nowMs).hosts.map(({ key }) => key);
}

describe("HostBoard", () => {
  it("shows hosts at work first, and of these the one that needs longest", () => {
    const hosts = [
      host("waiting.example", { total: 9_000 }),
      host("quick.example", { startsPerSec: 10 }),
      host("slow.example", { startsPerSec: 1 }),
      host("finished.example", { done: 100 }),
    ];
    const board = new HostBoard();
    expect(keysOf(board, source(hosts), 10, 0)).toEqual(["slow.example", "quick.example", "waiting.example"]);
  });

  it("shows a host in cooldown, though nothing starts there", () => {
    const board = new HostBoard();
    board.cooling("cooling.example", 600_000);
    const hosts = [host("busy.example", { startsPerSec: 1 }), host("cooling.example")];
    expect(keysOf(board, source(hosts), 1, 0)).toEqual(["cooling.example"]);
    expect([...board.coolingHosts(0)]).toEqual([["cooling.example", 600_000]]);
    expect([...board.coolingHosts(600_000)]).toEqual([]);
  });

  it("counts what it does not show", () => {
    const hosts = Array.from({ length: 200 }, (_, index) =>
      host(`h${index}.example`, { inFlight: 1, total: index + 1 }),
    );
    const { hosts: shown, more } = new HostBoard().show(source(hosts), 20, 0);
    expect(shown).toHaveLength(20);
    expect(shown[0]?.key).toBe("h199.example");
    expect(more).toBe(180);
  });

  it("keeps its order for two seconds", () => {
    const board = new HostBoard();
    const before = [host("a.example", { startsPerSec: 1 }), host("b.example", { startsPerSec: 2 })];
    const after = [host("a.example", { startsPerSec: 9 }), host("b.example", { startsPerSec: 2 })];
    keysOf(board, source(before), 2, 0);
    keysOf(board, source(before), 2, 200);
    expect(keysOf(board, source(after), 2, 1_900)).toEqual(["a.example", "b.example"]);
    expect(keysOf(board, source(after), 2, 2_300)).toEqual(["b.example", "a.example"]);
  });

  it("gives a line that became free to the next host at once", () => {
    const board = new HostBoard();
    const [a, b, c] = ["a", "b", "c"].map((name) => host(name, { startsPerSec: 1 })) as [
      HostProgress,
      HostProgress,
      HostProgress,
    ];
    expect(keysOf(board, source([a, b, c]), 2, 0)).toEqual(["a", "b"]);
    expect(keysOf(board, source([b, c]), 2, 300)).toEqual(["b"]);
    expect(keysOf(board, source([b, c]), 2, 600)).toEqual(["b", "c"]);
  });

  it("shows no more than there is room for, at once, when the terminal became lower", () => {
    const hosts = Array.from({ length: 9 }, (_, index) => host(`h${index}`, { inFlight: 1 }));
    const board = new HostBoard();
    expect(keysOf(board, source(hosts), 9, 0)).toHaveLength(9);
    expect(keysOf(board, source(hosts), 3, 10)).toHaveLength(3);
    expect(keysOf(board, source(hosts), 0, 20)).toHaveLength(0);
  });

  it("knows the pace of the hosts it shows, and what they wait for", () => {
    const board = new HostBoard();
    const wait = { nextStartMs: 5, cooldownMs: 0 };
    const waits = new Map([["a.example", wait]]);
    board.show(source([host("a.example")], waits), 5, 0);
    board.show(source([host("a.example", { done: 1 })], waits), 5, 1_000);
    const { hosts } = board.show(source([host("a.example", { done: 11 })], waits), 5, 4_000);
    expect(hosts[0]?.wait).toBe(wait);
    expect([...board.paces(hosts, 4_000)]).toEqual([{ key: "a.example", left: 89, msEach: 300, nextStartMs: 5 }]);
  });

  it("counts 20,000 hosts once a second only", () => {
    const hosts = Array.from({ length: 20_000 }, (_, index) => host(`h${index}`));
    let counted = 0;
    const many: BoardSource = {
      hosts: () => {
        counted += 1;
        return hosts;
      },
      waits: () => new Map(),
    };
    const board = new HostBoard();
    for (let nowMs = 0; nowMs < 3_000; nowMs += 100) board.show(many, 20, nowMs);
    expect(counted).toBe(3);
  });
});
