import { describe, expect, it } from "vitest";
import { VirtualOrigin, type VirtualOriginOptions } from "../../src/testing/index.js";

/** What odd callers pass in spite of the types. */
function make(options: unknown): VirtualOrigin {
  return new VirtualOrigin(options as VirtualOriginOptions);
}

const sliding = { kind: "sliding-window", rate: "1/s" };

describe("the options of an origin", () => {
  it.each<[unknown, string]>([
    [{ latencyMs: 5 }, 'VirtualOrigin has no field "latencyMs"'],
    [{ clock: {} }, "clock must have now, wall, setTimer and clearTimer"],
    [{ limits: sliding }, "limits must be a list"],
    [{ limits: [null] }, "limits[0] must be an object"],
    [{ limits: [{ kind: "leaky" }] }, 'limits[0].kind must be one of "leaky-bucket"'],
    [{ limits: [{ ...sliding, burst: 2 }] }, 'limits[0] has no field "burst"'],
    [{ limits: [{ ...sliding, rate: 5 }] }, "limits[0].rate must be a count per time"],
    [{ limits: [{ ...sliding, name: 'a"b' }] }, "limits[0].name must be printable ASCII"],
    [{ limits: [{ ...sliding, countBy: { header: "a b" } }] }, "limits[0].countBy.header must be a field"],
    [{ limits: [{ kind: "leaky-bucket", rate: "1/s", nodelay: 1 }] }, "limits[0].nodelay must be true or false"],
    [{ refusal: { retryAfter: "true" } }, "refusal.retryAfter must be one of"],
    [{ refusal: { retryAfter: { text: "a\nb" } } }, "refusal.retryAfter.text must be a field that HTTP can carry"],
    [{ refusal: { retryAfter: { plus: 1 } } }, 'refusal.retryAfter has no field "plus"'],
    [{ quotaHeaders: { families: ["y"] } }, "quotaHeaders.families[0] must be one of"],
    [{ quotaHeaders: {} }, "quotaHeaders.families must be a list"],
    [{ answers: ["crash"] }, 'answers[0] must be one of "reset", "timeout", "stall"'],
    [{ answers: [200, null] }, "answers[1] must be a status, a fault or an object"],
    [{ answers: [{ bodyMs: 10 }] }, "answers[0].bodyMs needs a body"],
    [{ answers: [{ body: 5 }] }, "answers[0].body must be an object"],
    [{ answers: [{ headers: { "a b": "1" } }] }, "answers[0].headers.a b must be a field"],
    [{ answers: [{ redirect: "/\u0000" }] }, "answers[0].redirect must be a field"],
    [{ pages: { a: 200 } }, 'pages must have paths that begin with "/"'],
    [{ robots: 5 }, "robots must be text"],
    [{ latency: "fast" }, "latency must be milliseconds or an object"],
    [{ latency: { kind: "normal" } }, "latency.kind must be one of"],
    [{ latency: { kind: "queue", service: 5, workers: 1, maxMs: 6 } }, 'latency has no field "maxMs"'],
    [{ travel: { kind: "queue", service: 1, workers: 1 } }, "travel.kind must be one of"],
    [{ answers: [{ headers: "x" }] }, "answers[0].headers must be an object"],
    [{ hosts: { "a.test": { limit: [] } } }, 'hosts["a.test"] has no field "limit"'],
    [{ hosts: { "a.test": { limits: [{ kind: "x" }] } } }, 'hosts["a.test"].limits[0].kind'],
    [{ hosts: { "a.test": {}, "A.test": {} } }, "hosts names a.test twice"],
    [{ hosts: { "http://a.test": {} } }, "host must be a host name without a scheme"],
  ])("of the wrong form are a TypeError: %j", (options, message) => {
    expect(() => make(options)).toThrow(TypeError);
    expect(() => make(options)).toThrow(message);
  });

  it.each<[unknown, string]>([
    [{ seed: -1 }, "seed must be a whole number from 0"],
    [{ keepRequests: 0 }, "keepRequests must be a whole number from 1 to 10000000; got 0"],
    [{ maxArrivals: 1.5 }, "maxArrivals must be a whole number"],
    [{ limits: Array.from({ length: 17 }, () => sliding) }, "limits must have at most 16 entries; got 17"],
    [{ limits: [{ ...sliding, rate: "0/s" }] }, "limits[0].rate must have a count above 0"],
    [{ limits: [{ ...sliding, rate: "100001/s" }] }, "limits[0].rate must count at most 100000 in its time"],
    [{ limits: [{ kind: "concurrency", count: 0 }] }, "limits[0].count must be a whole number from 1"],
    [{ limits: [{ kind: "leaky-bucket", rate: "1/h" }] }, "limits[0].rate must be from 0.001 to 1,000,000 a second"],
    [{ limits: [{ kind: "leaky-bucket", rate: "1/s", burst: -1 }] }, "limits[0].burst"],
    [{ limits: [{ kind: "token-bucket", rate: "1/d", burst: 1_000_000 }] }, "limits[0].burst is too large"],
    [{ limits: [{ kind: "penalty-box", rate: "1/s", banMs: 0 }] }, "limits[0].banMs must be from 1"],
    [{ refusal: { status: 302 } }, "refusal.status must be a whole number from 400 to 599; got 302"],
    [{ refusal: { status: [] } }, "refusal.status must have at least one entry"],
    [{ answers: [199] }, "answers[0].status must be a whole number from 200 to 599; got 199"],
    [{ answers: [{ body: { bytes: 2 ** 31 } }] }, "answers[0].body.bytes"],
    [{ answers: [{ body: { bytes: 2 ** 25 }, bodyMs: 5 }] }, "answers[0].body must have at most 16777216 bytes"],
    [{ pages: { "/a": { latencyMs: -1 } } }, 'pages["/a"].latencyMs must be from 0'],
    [{ latency: -1 }, "latency must be from 0"],
    [{ latency: Number.NaN }, "latency must be from 0"],
    [{ latency: { kind: "uniform", minMs: 5, maxMs: 4 } }, "latency.maxMs must be from 5"],
    [{ latency: { kind: "log-normal", medianMs: 5, sigma: 6 } }, "latency.sigma must be from 0 to 5; got 6"],
    [{ latency: { kind: "queue", service: 5, workers: 0 } }, "latency.workers must be a whole number from 1"],
    [{ latency: { kind: "queue", service: -5, workers: 1 } }, "latency.service must be from 0"],
    [{ wallSkewMs: Number.POSITIVE_INFINITY }, "wallSkewMs must be from"],
  ])("out of range are a RangeError: %j", (options, message) => {
    expect(() => make(options)).toThrow(RangeError);
    expect(() => make(options)).toThrow(message);
  });
});
