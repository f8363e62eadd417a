import { describe, expect, it } from "vitest";
import type { ControllerCallbacks, DispatchOptions, LegacyCallbacks } from "../../../src/http/undici/dispatchTypes.js";
import { connection, controllerEar, legacyEar, page, places, SITE, scripted } from "./register/scriptedUndici.js";

const UNREAD_MS = 5_000;
const MIB = 1_048_576;
const large = Buffer.alloc(MIB);

describe("a handler in the older style", () => {
  it("hears everything as it is, and is asked as before", async () => {
    const { clock, sent, dispatch } = scripted<LegacyCallbacks>();
    const ear = legacyEar(() => false);
    expect(dispatch(page, ear)).toBe(true);
    await clock.settle();
    const [{ handler }] = sent;
    expect("onRequestStart" in handler).toBe(false);
    const raw = [Buffer.from("X-A"), Buffer.from("1"), Buffer.from("x-b"), [Buffer.from("2"), Buffer.from("3")]];
    const resumed: string[] = [];
    handler.onConnect(() => undefined, undefined);
    expect(handler.onHeaders(200, raw, () => void resumed.push("yes"), "OK")).toBe(true);
    ear.resume?.();
    expect(handler.onData("chunk")).toBe(true);
    handler.onComplete(["t"]);
    expect(ear.heard).toEqual([
      ["connect", undefined],
      ["headers", 200, raw, "OK"],
      ["data", "chunk"],
      ["complete", ["t"]],
    ]);
    expect(resumed).toEqual(["yes"]);
  });

  it("is told of a second connection, and of what comes with the first", async () => {
    const { clock, sent, dispatch } = scripted<LegacyCallbacks>();
    const ear = legacyEar();
    dispatch(page, ear);
    await clock.settle();
    const aborted: string[] = [];
    sent[0].handler.onConnect(() => void aborted.push("first"), { history: [] });
    sent[0].handler.onConnect(() => void aborted.push("second"), undefined);
    expect(ear.heard).toEqual([
      ["connect", undefined],
      ["connect", { history: [] }],
      ["connect", undefined],
    ]);
    ear.abort?.();
    expect(aborted).toEqual(["second"]);
  });

  it("that aborts without a reason gets the error that undici has for it", async () => {
    const { clock, polite, sent, dispatch } = scripted<LegacyCallbacks>();
    const ear = legacyEar();
    dispatch(page, ear);
    ear.abort?.();
    expect(ear.heard[1]).toMatchObject(["error", { name: "AbortError", code: "UND_ERR_ABORTED" }]);
    await clock.settle();
    expect([sent.length, ...places(polite)]).toEqual([0, 0, 0]);
  });

  it("that aborts at any moment between its grant and its departure takes nothing", async () => {
    const counts = new Set<number>();
    for (let moments = 0; moments < 16; moments++) {
      const { clock, polite, sent, dispatch } = scripted<LegacyCallbacks>();
      const ear = legacyEar();
      dispatch(page, ear);
      for (let moment = 0; moment < moments; moment++) await Promise.resolve();
      ear.abort?.(new Error("now"));
      await clock.settle();
      expect([places(polite), ear.heard.length]).toEqual([[0, 0], 2]);
      counts.add(sent.length);
    }
    // Some came before the departure and some after it.
    expect(counts).toEqual(new Set([0, 1]));
  });

  it("hears a 103 that the limiter does not listen to", async () => {
    const { clock, polite, sent, dispatch } = scripted<LegacyCallbacks>(2);
    const ear = legacyEar();
    dispatch(page, ear);
    await clock.settle();
    const raw = ["RateLimit-Limit", "1", "RateLimit-Remaining", "0", "RateLimit-Reset", "60"].map((each) =>
      Buffer.from(each),
    );
    sent[0].handler.onConnect(() => undefined, undefined);
    sent[0].handler.onHeaders(103, raw, () => undefined, "Early Hints");
    expect([ear.heard[1]?.[1], polite.check(SITE)]).toEqual([103, { proceed: true, waitMs: 0 }]);
    sent[0].handler.onHeaders(200, raw, () => undefined, "OK");
    expect(polite.check(SITE)).toMatchObject({ proceed: false, waitMs: 60_000 });
  });

  it("that throws when it is given the means to abort gets its own error, as from undici", () => {
    const { sent, dispatch } = scripted<LegacyCallbacks>();
    const ear = legacyEar();
    const broken = new Error("broken");
    const onConnect = (): void => {
      throw broken;
    };
    dispatch(page, { ...ear, onConnect });
    expect([ear.heard, sent.length]).toEqual([[["error", broken]], 0]);
  });
});

describe("a handler in the newer style", () => {
  it("hears everything as it is, and steers its connection", async () => {
    const { clock, sent, dispatch } = scripted<ControllerCallbacks>();
    const ear = controllerEar();
    expect(dispatch(page, ear)).toBe(true);
    await clock.settle();
    const [{ handler }] = sent;
    const inner = connection();
    handler.onRequestStart(inner, null);
    handler.onResponseStart(inner, 200, { "x-a": "1" }, "OK");
    handler.onResponseData(inner, "chunk");
    ear.controller?.pause();
    handler.onResponseData(inner, large);
    expect([ear.controller?.paused, ear.controller?.rawHeaders]).toEqual([true, inner.rawHeaders]);
    ear.controller?.resume();
    handler.onResponseEnd(inner, {});
    expect(ear.heard).toEqual([
      ["start", null],
      ["headers", 200, { "x-a": "1" }, "OK"],
      ["data", "chunk"],
      ["data", large],
      ["end", {}],
    ]);
    expect(inner.told).toEqual(["pause", "resume"]);
  });

  it("keeps its pause from before there was a connection, beyond 1 MiB", async () => {
    const { clock, sent, dispatch } = scripted<ControllerCallbacks>();
    const ear = controllerEar();
    dispatch(page, ear);
    ear.controller?.pause();
    await clock.settle();
    const inner = connection();
    sent[0].handler.onRequestStart(inner, null);
    sent[0].handler.onResponseStart(inner, 200, {}, "OK");
    sent[0].handler.onResponseData(inner, large.subarray(0, MIB / 2));
    expect(inner.told).toEqual([]);
    sent[0].handler.onResponseData(inner, large.subarray(0, MIB / 2));
    expect(inner.told).toEqual(["pause"]);
  });

  it("is sent no more than 8,129 pieces ahead, however small they are", async () => {
    const { clock, sent, dispatch } = scripted<ControllerCallbacks>();
    const ear = controllerEar();
    dispatch(page, ear);
    ear.controller?.pause();
    await clock.settle();
    const inner = connection();
    sent[0].handler.onRequestStart(inner, null);
    sent[0].handler.onResponseStart(inner, 200, {}, "OK");
    for (let piece = 0; piece < 8_128; piece++) sent[0].handler.onResponseData(inner, large.subarray(0, 1));
    expect(inner.told).toEqual([]);
    sent[0].handler.onResponseData(inner, large.subarray(0, 1));
    expect(inner.told).toEqual(["pause"]);
  });

  it("that aborts before there is a connection is told at once, and the connection when it comes", async () => {
    const { clock, polite, sent, dispatch } = scripted<ControllerCallbacks>();
    const ear = controllerEar();
    dispatch(page, ear);
    await clock.settle();
    ear.controller?.abort("enough");
    expect(ear.heard).toEqual([
      ["start", null],
      ["error", "enough", true],
    ]);
    expect(places(polite)).toEqual([0, 0]);
    const inner = connection();
    sent[0].handler.onRequestStart(inner, null);
    sent[0].handler.onResponseError(inner, "enough");
    expect([inner.told, ear.heard.length]).toEqual([[["abort", "enough"]], 2]);
  });

  it("is handed the socket of an upgrade, and the place is free", async () => {
    const { clock, polite, sent, dispatch } = scripted<ControllerCallbacks>();
    const ear = controllerEar();
    dispatch({ ...page, upgrade: "websocket" } as DispatchOptions, ear);
    await clock.settle();
    const inner = connection();
    sent[0].handler.onRequestStart(inner, null);
    expect(places(polite)).toEqual([1, 0]);
    sent[0].handler.onRequestUpgrade(inner, 101, { upgrade: "websocket" }, "socket");
    expect([ear.heard[1], places(polite)]).toEqual([
      ["upgrade", 101, { upgrade: "websocket" }, "socket"],
      [0, 0],
    ]);
  });
});

describe("a body that nobody reads", () => {
  it("gives its place back after 5 s without a reader, and goes on", async () => {
    const { clock, polite, sent, dispatch } = scripted<LegacyCallbacks>();
    const ear = legacyEar(() => false);
    dispatch(page, ear);
    dispatch(page, legacyEar());
    await clock.settle();
    sent[0].handler.onConnect(() => undefined, undefined);
    sent[0].handler.onHeaders(200, [], () => undefined, "OK");
    await clock.advance(UNREAD_MS);
    expect([places(polite), sent.length]).toEqual([[1, 1], 1]);
    expect(sent[0].handler.onData(large)).toBe(false);
    await clock.advance(UNREAD_MS - 1);
    expect([places(polite), sent.length]).toEqual([[1, 1], 1]);
    await clock.advance(1);
    expect([places(polite), sent.length]).toEqual([[1, 0], 2]);
    sent[0].handler.onData("more");
    sent[0].handler.onComplete([]);
    expect(ear.heard.map(([what]) => what)).toEqual(["connect", "headers", "data", "data", "complete"]);
    expect(polite.stats("example.org")).toMatchObject({ granted: 2, released: 1, inFlight: 1 });
  });

  it("keeps its place while somebody reads now and then, however large it is", async () => {
    const { clock, polite, sent, dispatch } = scripted<LegacyCallbacks>();
    const ear = legacyEar(() => false);
    dispatch(page, ear);
    await clock.settle();
    sent[0].handler.onConnect(() => undefined, undefined);
    sent[0].handler.onHeaders(200, [], () => undefined, "OK");
    for (let count = 0; count < 10; count++) {
      await clock.advance(UNREAD_MS - 1_000);
      ear.resume?.();
      sent[0].handler.onData(large);
    }
    expect(places(polite)).toEqual([1, 0]);
    sent[0].handler.onComplete([]);
    expect(places(polite)).toEqual([0, 0]);
    // No timer is left that would keep the process alive.
    const doneAtMs = clock.now();
    await clock.runToEnd();
    expect(clock.now()).toBe(doneAtMs);
  });
});
