import type { Operation } from "../operations.js";
import { CHANGE_LUA, PREPARE_LUA } from "./changeLua.js";
import { FLEET_LUA, QUEUE_LUA } from "./fleetLua.js";
import { LEASE_LUA } from "./leaseLua.js";
import { LIMITS_LUA } from "./limitsLua.js";
import { LOG_LUA } from "./logLua.js";
import { LOOK_LUA } from "./lookLua.js";
import { HEAR_LUA, RECORD_LUA, RENEW_LUA, SETTLE_LUA } from "./settleLua.js";
import { STATE_LUA } from "./stateLua.js";
import { TAKE_LUA } from "./takeLua.js";

/** The text of one script for each kind of operation. A script defines only what it needs: Redis runs all of it with each call. */
export type ScriptTexts = Readonly<Record<Operation["kind"], string>>;

/**
 * The scripts.
 *
 * `clock` is a Lua expression that gives the seconds and the microseconds; tests put one in its place that they control.
 */
export function scriptTexts(clock = 'redis.call("TIME")'): ScriptTexts {
  const head = `local clock = ${clock}\n`;
  const shared = STATE_LUA + LOG_LUA + LIMITS_LUA + PREPARE_LUA + FLEET_LUA + rarely(QUEUE_LUA + CHANGE_LUA);
  const limits = (text: string, isLook = false): string => {
    const write = isLook ? "function() end" : "redis.call";
    return withTable(`${head}local isLook, write = ${isLook}, ${write}\n${shared}${text}`);
  };
  return {
    take: limits(TAKE_LUA),
    settle: limits(HEAR_LUA + SETTLE_LUA),
    record: limits(HEAR_LUA + RECORD_LUA),
    renew: limits(RENEW_LUA),
    look: limits(LOOK_LUA, true),
    lease: head + LEASE_LUA,
  };
}

/** Defines functions when the first of them is called. */
function rarely(text: string): string {
  return `setmetatable(F, { __index = function(_, name)\n${text}\nreturn rawget(F, name)\nend })\n`;
}

/** Puts the table of functions before a script, with room for all of them: a table that grows is dear. */
function withTable(text: string): string {
  const names = Array.from(text.split("setmetatable")[0].matchAll(/^function F\.(\w+)/gm), ([, name]) => `${name} = 0`);
  return `local F = { ${names.join(", ")} }\n${text}`;
}
