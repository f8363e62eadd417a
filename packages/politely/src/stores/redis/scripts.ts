import type { Operation } from "../../shared/operation.js";
import { BLOCKS_LUA } from "./blocksLua.js";
import { FRAME_LUA } from "./frameLua.js";
import { LEASE_LUA } from "./leaseLua.js";
import { LEAVE_LUA, LOOK_LUA, RECORD_LUA, RENEW_LUA, SET_LUA } from "./restLua.js";
import { SETTLE_LUA } from "./settleLua.js";
import { STATE_LUA } from "./stateLua.js";
import { KEYS_LUA, SHORT_TAKE_LUA, TAKE_LUA, TAKES_LUA } from "./takeLua.js";
import { TRACKS_LUA } from "./tracksLua.js";

/** The text of one script for each kind of operation. A script defines only what it needs: Redis runs all of it with each call. */
export type ScriptTexts = Readonly<Record<ScriptName, string>>;

/** An operation, or several takes together. */
export type ScriptName = Operation["kind"] | "takes";

/** What asks Redis for its time: seconds and microseconds. */
const SERVER_CLOCK = 'redis.call("TIME")';

/**
 * The scripts. Each has the time in `now`, in microseconds since 1970.
 *
 * `clock` is a Lua expression that gives the seconds and the microseconds; tests put one in its place that they control.
 */
export function scriptTexts(clock: string = SERVER_CLOCK): ScriptTexts {
  const head = `local clock = ${clock}\nlocal now = clock[1] * 1000000 + clock[2]\n`;
  const limits = STATE_LUA + TRACKS_LUA + FRAME_LUA;
  return {
    take: head + SHORT_TAKE_LUA + withTable(limits + KEYS_LUA + BLOCKS_LUA + TAKE_LUA),
    takes: head + TAKES_LUA,
    settle: head + withTable(limits + SETTLE_LUA),
    renew: head + withTable(limits + RENEW_LUA),
    leave: head + withTable(limits + LEAVE_LUA),
    record: head + withTable(limits + KEYS_LUA + RECORD_LUA),
    set: head + withTable(limits + SET_LUA),
    look: head + withTable(limits + KEYS_LUA + BLOCKS_LUA + LOOK_LUA),
    lease: head + LEASE_LUA,
  };
}

/** Puts the table of functions before a script, with room for all of them: a table that grows is dear. */
function withTable(text: string): string {
  const names = Array.from(text.matchAll(/^function F\.(\w+)/gm), ([, name]) => `${name} = 0`);
  return `local F = { ${names.join(", ")} }\n${text}`;
}
