import { describe, expect, it } from "vitest";
import type { Flight } from "../../../src/http/flight.js";
import { ControllerTap } from "../../../src/http/tap/controllerTap.js";
import { LegacyTap } from "../../../src/http/tap/legacyTap.js";
import type { Tap } from "../../../src/http/tap/tap.js";
import type { Controller } from "../../../src/http/undici/dispatchTypes.js";

const MIB = 1_048_576;

/** A tap between a connection and a `fetch`, both played by the test. */
interface Line {
  readonly tap: Tap;
  /** What `fetch` was given, in order. */
  readonly heard: unknown[];
  /** What was asked of the connection. */
  readonly asked: unknown[];
  /** Whether `fetch` takes more after a chunk. */
  wantsMore: boolean;
  headers(status: number, fields?: Record<string, string>): void;
  data(chunk: Uint8Array): void;
  end(): void;
  fail(error: Error): void;
  /** `fetch` asks for bytes. */
  ask(): void;
  /** `fetch` wants no more. */
  abort(reason: unknown): void;
}

function legacyLine(): Line {
  const heard: unknown[] = [];
  const asked: unknown[] = [];
  let ask = (): void => undefined;
  let abort: (reason: unknown) => void = () => undefined;
  const tap = new LegacyTap(
    {
      onConnect: (given) => {
        abort = given;
      },
      onHeaders: (status, _raw, resume) => {
        heard.push(status);
        ask = resume;
        return true;
      },
      onData: (chunk) => {
        heard.push(chunk);
        return line.wantsMore;
      },
      onComplete: () => heard.push("end"),
      onError: (error) => heard.push(error),
    },
    undefined,
  );
  tap.onConnect((reason) => asked.push(["abort", reason]), null);
  const line: Line = {
    tap,
    heard,
    asked,
    wantsMore: true,
    headers: (status, fields = {}) => {
      const raw = Object.entries(fields).flat();
      tap.onHeaders(
        status,
        raw.map((text) => Buffer.from(text)),
        () => asked.push("resume"),
      );
    },
    data: (chunk) => {
      if (tap.onData(chunk) === false) asked.push("pause");
    },
    end: () => tap.onComplete([]),
    fail: (error) => tap.onError(error),
    ask: () => ask(),
    abort: (reason) => abort(reason),
  };
  return line;
}

function controllerLine(): Line {
  const heard: unknown[] = [];
  const asked: unknown[] = [];
  const connection: Controller = {
    abort: (reason) => asked.push(["abort", reason]),
    pause: () => asked.push("pause"),
    resume: () => asked.push("resume"),
  };
  let steer: Controller = connection;
  const tap = new ControllerTap(
    {
      onRequestStart: (controller) => {
        steer = controller;
      },
      onResponseStart: (_controller, status) => heard.push(status),
      onResponseData: (controller, chunk) => {
        heard.push(chunk);
        if (!line.wantsMore) controller.pause();
      },
      onResponseEnd: () => heard.push("end"),
      onResponseError: (_controller, error) => heard.push(error),
    },
    undefined,
  );
  tap.onRequestStart(connection, null);
  const line: Line = {
    tap,
    heard,
    asked,
    wantsMore: true,
    headers: (status, fields = {}) => tap.onResponseStart(connection, status, fields),
    data: (chunk) => tap.onResponseData(connection, chunk),
    end: () => tap.onResponseEnd(connection, {}),
    fail: (error) => tap.onResponseError(connection, error),
    ask: () => steer.resume(),
    abort: (reason) => steer.abort(reason),
  };
  return line;
}

/** Tells what it hears. */
function flightOf(told: unknown[]): Flight {
  return { done: () => told.push("done"), failed: (error: unknown) => told.push(error) } as unknown as Flight;
}

describe.each([
  ["undici 6", legacyLine],
  ["undici 8", controllerLine],
])("a tap with the callbacks of %s", (_name, open) => {
  const [one, two] = [Buffer.from("one"), Buffer.from("two")];

  it("keeps what comes until fetch asks for it, in order, and then passes everything on", () => {
    const line = open();
    line.headers(200);
    line.data(one);
    expect(line.heard).toEqual([200]);
    line.ask();
    expect([line.heard, line.asked]).toEqual([[200, one], ["resume"]]);
    line.data(two);
    line.end();
    expect(line.heard).toEqual([200, one, two, "end"]);
  });

  it.each(["before", "after"])(
    "gives the whole body to whoever takes it %s its end, and fetch only the end",
    (when) => {
      const line = open();
      let taken: readonly Uint8Array[] | undefined;
      const take = (): void =>
        line.tap.take((chunks) => {
          taken = chunks;
        });
      line.headers(200);
      line.data(one);
      if (when === "before") take();
      line.data(two);
      line.end();
      if (when === "after") take();
      expect([taken, line.heard]).toEqual([
        [one, two],
        [200, "end"],
      ]);
    },
  );

  it("stops the connection at 1 MiB until somebody wants the body", () => {
    for (const want of ["ask", "take"] as const) {
      const line = open();
      line.headers(200);
      line.data(Buffer.alloc(MIB - 1));
      expect(line.asked).toEqual([]);
      line.data(one);
      expect(line.asked).toEqual(["pause"]);
      if (want === "ask") line.ask();
      else line.tap.take(() => undefined);
      expect(line.asked).toEqual(["pause", "resume"]);
    }
  });

  it("lets in 1 MiB more than fetch wants, in 8,192 pieces at most", () => {
    const large = open();
    large.headers(200);
    large.ask();
    large.wantsMore = false;
    large.data(Buffer.alloc(MIB - 1));
    expect(large.asked).toEqual(["resume"]);
    large.data(one);
    expect(large.asked).toEqual(["resume", "pause"]);
    const many = open();
    many.headers(200);
    many.ask();
    many.wantsMore = false;
    for (let piece = 0; piece < 8_192; piece++) many.data(one);
    expect(many.asked).toEqual(["resume", "pause"]);
  });

  it("leaves to fetch what is compressed, however that is spelt, and what comes before an answer", () => {
    const line = open();
    line.headers(103, { "content-encoding": "gzip" });
    expect([line.tap.isHeld, line.tap.headers]).toEqual([true, undefined]);
    line.headers(200, { "content-encoding": "br" });
    expect(line.tap.isHeld).toBe(false);
    line.data(one);
    expect(line.heard).toEqual([103, 200, one]);
  });

  it("tells fetch and whoever takes the body of a failure, once, and the flight what it was", () => {
    const line = open();
    const told: unknown[] = [];
    const error = new Error("reset");
    const taken: unknown[] = [];
    line.headers(200);
    line.tap.watch(flightOf(told));
    line.tap.take((chunks) => taken.push(chunks));
    line.data(one);
    line.fail(error);
    expect([line.heard, taken, told]).toEqual([[200, error], [undefined], [error]]);
  });

  it("gives nothing of a body after an abort, although the connection goes on for a while", () => {
    const line = open();
    const taken: unknown[] = [];
    line.headers(200);
    line.data(one);
    line.tap.take((chunks) => taken.push(chunks));
    line.abort(new Error("enough"));
    expect(taken).toEqual([undefined]);
    line.data(two);
    line.end();
    expect([taken, line.heard]).toEqual([[undefined], [200, two, "end"]]);
  });

  it("takes texts for bytes", () => {
    const line = open();
    const taken: unknown[] = [];
    line.headers(200);
    line.data("é" as unknown as Uint8Array);
    line.tap.take((chunks) => taken.push(chunks?.map((chunk) => Buffer.from(chunk).toString())));
    line.end();
    expect(taken).toEqual([["é"]]);
  });

  it("tells a flight that comes late of an end or a failure that was before", () => {
    const [ended, failed] = [open(), open()];
    const told: unknown[] = [];
    const error = new Error("reset");
    for (const line of [ended, failed]) line.headers(200);
    ended.end();
    failed.fail(error);
    ended.tap.watch(flightOf(told));
    failed.tap.watch(flightOf(told));
    expect(told).toEqual(["done", error]);
  });

  it("is over without a word about the site when fetch wants no more", () => {
    const line = open();
    const told: unknown[] = [];
    const reason = new DOMException("late", "TimeoutError");
    line.headers(200);
    line.tap.watch(flightOf(told));
    line.data(one);
    line.abort(reason);
    expect([line.asked, line.tap.isHeld]).toEqual([[["abort", reason]], false]);
    line.fail(reason);
    expect([line.heard, told]).toEqual([[200, reason], ["done"]]);
  });
});
