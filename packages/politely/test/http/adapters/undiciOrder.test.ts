import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LegacyCallbacks } from "../../../src/http/undici/dispatchTypes.js";
import { seeded } from "../../laws/seeded.js";
import { legacyEar, page, scripted } from "./register/scriptedUndici.js";

describe("whatever happens to requests, in any order", () => {
  const steps = [
    "settle",
    "connect",
    "early",
    "headers",
    "429",
    "data",
    "complete",
    "error",
    "abort",
    "upgrade",
  ] as const;

  it("every caller hears one end, and every place comes back once", async () => {
    const script = fc.array(fc.tuple(fc.nat(2), fc.constantFrom(...steps)), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(script, fc.boolean(), async (moves, wantsMore) => {
        const { clock, polite, sent, dispatch } = scripted<LegacyCallbacks>(2);
        const ears = Array.from({ length: 3 }, () => legacyEar(() => wantsMore));
        const connections = new Map<number, UndiciRequest>();
        for (const ear of ears) dispatch(page, ear);
        for (const [index, step] of moves) {
          if (step === "settle") await clock.settle();
          else if (step === "abort") ears[index].abort?.(new Error("abort"));
          else if (index < sent.length) requestOf(connections, index, sent[index].handler).take(step);
        }
        // Whatever is still under way comes to its end.
        for (const ear of ears) ear.abort?.(new Error("last"));
        await clock.settle();
        for (const [index, { handler }] of sent.entries()) requestOf(connections, index, handler).end();
        expect(ears.map(({ heard }) => heard.filter(([what]) => isEnd(what)).length)).toEqual([1, 1, 1]);
        const { asked, granted, released, cancelled, inFlight, waiting } = { ...zero, ...polite.stats("example.org") };
        expect([inFlight, waiting, granted - released, asked - granted - cancelled]).toEqual([0, 0, 0, 0]);
      }),
      seeded(300),
    );
  });
});

const zero = { asked: 0, granted: 0, released: 0, cancelled: 0, inFlight: 0, waiting: 0 };

function isEnd(what: unknown): boolean {
  return what === "complete" || what === "error" || what === "upgrade";
}

/** A request inside undici that keeps to undici's order of callbacks, whatever it is told to do. */
class UndiciRequest {
  #state: "new" | "connected" | "answered" | "over" = "new";

  constructor(readonly handler: Required<LegacyCallbacks>) {}

  take(step: string): void {
    const state = this.#state;
    if (step === "connect" && state === "new") {
      this.#state = "connected";
      this.handler.onConnect((reason) => this.#fail(reason), undefined);
    } else if (step === "early" && state === "connected") {
      this.handler.onHeaders(103, [], () => undefined, "Early Hints");
    } else if ((step === "headers" || step === "429") && state === "connected") {
      this.#state = "answered";
      this.handler.onHeaders(step === "429" ? 429 : 200, ["Retry-After", "1"], () => undefined, "");
    } else if (step === "data" && state === "answered") {
      this.handler.onData("chunk");
    } else if (step === "complete" && state === "answered") {
      this.#state = "over";
      this.handler.onComplete([]);
    } else if (step === "upgrade" && state === "connected") {
      this.#state = "over";
      this.handler.onUpgrade(101, [], "socket");
    } else if (step === "error") {
      this.#fail(Object.assign(new Error("reset"), { code: "ECONNRESET" }));
    }
  }

  end(): void {
    this.take("connect");
    this.#fail(new Error("end"));
  }

  #fail(error: unknown): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.handler.onError(error);
  }
}

function requestOf(all: Map<number, UndiciRequest>, index: number, handler: Required<LegacyCallbacks>): UndiciRequest {
  const known = all.get(index) ?? new UndiciRequest(handler);
  all.set(index, known);
  return known;
}
