import { readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import type { judge as judgeRun } from "./judge.js";
import type { scenarioOf as scenarioOfSeed } from "./scenario.js";
import type { play as playScenario } from "./world.js";

/** A fault that is put back into the source, and what the simulation says of it. */
interface Mutant {
  readonly what: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly found: RegExp;
}

const mutants: readonly Mutant[] = [
  {
    what: "a store counts as away once it refused for 150 ms",
    file: "fleet/link.ts",
    from: "const AWAY_MS = 4_500;",
    to: "const AWAY_MS = 150;",
    found: /a start without the store/,
  },
  {
    what: "a grant is used however late its reply came",
    file: "fleet/fleetArbiter.ts",
    from: "(ready) => ready.lateUs < nowUs || isOther",
    to: "() => isOther",
    found: /a grant was used \d+ ms late/,
  },
  {
    what: "a start of an outage is told on the process's clock",
    file: "fleet/fleetArbiter.ts",
    from: "startedUs: permit.startedUs + this.link.offsetUs",
    to: "startedUs: permit.startedUs",
    found: /off the store's clock/,
  },
  {
    what: "an operation that is sent again is carried out again",
    file: "stores/decide.ts",
    from: "known !== undefined && known.number >= number",
    to: "known !== undefined && known.number > number + 1e9",
    found: /carried out twice/,
  },
  {
    what: "a clock that was set back leaves the past where it was",
    file: "stores/decide.ts",
    from: "state.move(clockUs - state.changedUs)",
    to: "state.changedUs += 0",
    found: /.*/,
  },
  {
    what: "the place of a killed process is never free",
    file: "stores/decide.ts",
    from: "Math.min(place.startedUs + maxHoldUs, aliveUntilUs)",
    to: "place.startedUs + maxHoldUs",
    found: /hangs/,
  },
  {
    what: "a later answer shortens a cooldown",
    file: "core/incident.ts",
    from: "Math.max(before?.untilUs ?? Number.NEGATIVE_INFINITY, nowUs + (retryAfterUs || ladderUs))",
    to: "nowUs + (retryAfterUs || ladderUs)",
    found: /before the end of a hold/,
  },
  {
    what: "a start that was granted ahead counts as of now",
    file: "stores/decide.ts",
    from: "takeAt(state, rule, times(cost, count), atUs, nowUs)",
    to: "takeAt(state, rule, times(cost, count), nowUs, nowUs)",
    found: /\(L1\)/,
  },
];

const source = fileURLToPath(new URL("../../src/", import.meta.url));
const SEEDS = 2000;

/** The simulation over a source in which one place is changed. */
async function mutated({ file, from, to }: Mutant) {
  const path = join(source, file);
  const text = await readFile(path, "utf8");
  expect(text.split(from), `${file} has "${from}" once`).toHaveLength(2);
  const here = (name: string): string => JSON.stringify(fileURLToPath(new URL(name, import.meta.url)));
  const contents = `export { play } from ${here("world.ts")}; export { scenarioOf } from ${here("scenario.ts")}; export { judge } from ${here("judge.ts")}; import ${JSON.stringify(join(source, "shareLimiter.ts"))};`;
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: source, loader: "ts" },
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    ignoreAnnotations: true,
    logLevel: "error",
    plugins: [
      {
        name: "mutant",
        setup({ onLoad }) {
          onLoad({ filter: /\.ts$/ }, ({ path: loaded }) =>
            loaded === path ? { contents: text.replace(from, to), loader: "ts" } : undefined,
          );
        },
      },
    ],
  });
  const bundle = join(tmpdir(), `politely-mutant-${process.pid}-${Math.random().toString(36).slice(2)}.mjs`);
  await writeFile(bundle, outputFiles[0].text);
  try {
    return (await import(/* @vite-ignore */ pathToFileURL(bundle).href)) as {
      readonly play: typeof playScenario;
      readonly scenarioOf: typeof scenarioOfSeed;
      readonly judge: typeof judgeRun;
    };
  } finally {
    await rm(bundle);
  }
}

describe("the simulation finds the fault that", () => {
  it.each(mutants)("$what", async (mutant) => {
    const { judge, play, scenarioOf } = await mutated(mutant);
    for (let seed = 1; seed <= SEEDS; seed++) {
      const faults = judge(await play(scenarioOf(seed)));
      const fault = faults.find((one) => mutant.found.test(one));
      if (fault === undefined) continue;
      console.info(`${mutant.what}: seed ${seed}, ${fault}`);
      return;
    }
    expect.fail(`none of ${SEEDS} seeds shows that ${mutant.what}`);
  });
});
