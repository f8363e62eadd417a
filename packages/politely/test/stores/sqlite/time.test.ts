import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MachineTime } from "../../../src/stores/machineTime.js";
import { machineTime } from "../../../src/stores/machineTime.js";
import { type SqliteCells, sqliteCells } from "../../../src/stores/sqlite.js";
import { seeded } from "../../laws/seeded.js";
import { temporaryFile } from "./temporaryFile.js";

const hourUs = 3_600_000_000;

/** A machine whose clock and restarts a test controls. Without `hasBootIds` it is one that cannot tell its runs apart. */
class Machine {
  /** What a clock on the wall would say if it were always right. */
  realUs = 1_000_000_000;
  private bootedUs = 0;
  private boots = 1;

  constructor(private readonly hasBootIds = true) {}

  reboot(downUs: number): void {
    this.realUs += downUs;
    this.bootedUs = this.realUs;
    this.boots += 1;
  }

  /** The clock of a process that starts now. */
  clock(): MachineTime {
    return {
      nowUs: () => this.realUs - this.bootedUs,
      bootId: this.hasBootIds ? `boot ${this.boots}` : "",
    };
  }
}

/** Writes a cell and gives the store's time. */
function touch(cells: SqliteCells, key: string, ttlUs = 100 * hourUs): Promise<number> {
  return cells.change([key], (_, nowUs) => ({ writes: [{ index: 0, value: "touched", ttlUs }], answer: nowUs }));
}

function timeOf(cells: SqliteCells): Promise<number> {
  return cells.change(["none"], (_, nowUs) => ({ writes: [], answer: nowUs }));
}

describe("the time of a SQLite file", () => {
  it("goes on after a restart of the machine from when something was last written", async () => {
    using file = temporaryFile();
    const machine = new Machine();
    const before = sqliteCells(file.open(), {}, machine.clock());
    await touch(before, "early");
    machine.realUs += 5_000_000;
    const lastUs = await touch(before, "late");

    machine.reboot(hourUs);
    machine.realUs += 2_000_000;
    const after = sqliteCells(file.open(), {}, machine.clock());
    // An hour has gone by, and none of it counts.
    expect(await timeOf(after)).toBe(lastUs);
    machine.realUs += 3_000_000;
    expect(await timeOf(sqliteCells(file.open(), {}, machine.clock()))).toBe(lastUs + 3_000_000);
  });

  it("keeps what would have expired while the machine was off", async () => {
    using file = temporaryFile();
    const machine = new Machine();
    await touch(sqliteCells(file.open(), {}, machine.clock()), "debt", 60_000_000);
    machine.reboot(hourUs);
    const after = sqliteCells(file.open(), {}, machine.clock());
    const read = () => after.change(["debt"], ([debt]) => ({ writes: [], answer: debt }));
    machine.realUs += 59_999_999;
    expect(await read()).toBe("touched");
    machine.realUs += 59_999_999;
    expect(await read()).toBe("touched");
    machine.realUs += 1;
    expect(await read()).toBe(undefined);
  });

  it("starts with the machine's clock in a new file, and once more when the tables were removed", async () => {
    using file = temporaryFile();
    const machine = new Machine();
    const cells = sqliteCells(file.open(), {}, machine.clock());
    expect(await touch(cells, "a")).toBe(machine.realUs);
    file.open().exec("DROP TABLE politely; DROP TABLE politely_clock");
    await expect(touch(cells, "a")).rejects.toThrow("politely_clock");
    machine.realUs += 1_000;
    expect(await touch(cells, "a")).toBe(machine.realUs);
  });

  it.each([
    ["that tells its runs apart", true],
    ["that does not", false],
  ])("never goes back, and never runs ahead of real time, on a machine %s", async (_, hasBootIds) => {
    const anyStep = fc.record({
      passUs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 10 }), fc.integer({ min: 0, max: 2 * hourUs })),
      event: fc.constantFrom("nothing", "nothing", "new process", "restart"),
      process: fc.nat(2),
      key: fc.constantFrom("a", "b", "c", "d"),
      isWrite: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: 40 }), async (steps) => {
        using file = temporaryFile();
        const machine = new Machine(hasBootIds);
        const handle = file.open();
        const join = (): SqliteCells => sqliteCells(handle, {}, machine.clock());
        let processes = [join()];
        // The first start is remembered in the file; what is only looked at is not.
        let last = { storeUs: await touch(processes[0], "a"), realUs: machine.realUs };

        for (const { passUs, event, process, key, isWrite } of steps) {
          machine.realUs += passUs;
          if (event === "restart") {
            machine.reboot(passUs + 1);
            processes = [join()];
          } else if (event === "new process" && processes.length < 3) {
            processes.push(join());
          }
          const cells = processes[process % processes.length];
          const storeUs = isWrite ? await touch(cells, key) : await timeOf(cells);
          expect(storeUs).toBeGreaterThanOrEqual(last.storeUs);
          expect(storeUs - last.storeUs).toBeLessThanOrEqual(machine.realUs - last.realUs);
          if (isWrite) last = { storeUs, realUs: machine.realUs };
        }
      }),
      seeded(60),
    );
  });

  it("is refused to a second machine while the first one runs", async () => {
    using file = temporaryFile();
    const [first, second] = [new Machine(), new Machine()];
    second.reboot(1_000);
    const here = sqliteCells(file.open(), {}, first.clock());
    await touch(here, "a");
    await touch(sqliteCells(file.open(), {}, second.clock()), "a");
    await expect(touch(here, "a")).rejects.toMatchObject({
      code: "POLITELY_STORE",
      message: expect.stringContaining("on another machine") as string,
    });
  });
});

describe("the clock of the machine", () => {
  it("counts whole microseconds, does not go back, and keeps pace with the monotonic clock", () => {
    const time = machineTime();
    const before = process.hrtime.bigint();
    const nowUs = time.nowUs();
    const after = process.hrtime.bigint();
    expect(Number.isSafeInteger(nowUs)).toBe(true);
    expect(nowUs).toBeGreaterThanOrEqual(Number(before / 1_000n));
    expect(nowUs).toBeLessThanOrEqual(Number(after / 1_000n));
    expect(time.nowUs()).toBeGreaterThanOrEqual(nowUs);
  });

  it("has the same boot id each time", () => {
    expect(machineTime().bootId).toBe(machineTime().bootId);
    if (process.platform === "linux") expect(machineTime().bootId).toMatch(/^[0-9a-f-]{36}/);
  });
});
