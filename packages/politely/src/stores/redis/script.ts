import { HEAR_LUA, LEASE_LUA, SETTLE_LUA, TELL_LUA } from "./answerLua.js";
import { FLEET_LUA, MEMBERS_LUA } from "./fleetLua.js";
import { CHANGE_LUA, FEW_LUA, LIMITS_LUA } from "./limitsLua.js";
import { LOG_LUA } from "./logLua.js";
import { STAND_LUA, TAKE_LUA } from "./operationsLua.js";
import { RUN_LUA, STATE_LUA } from "./stateLua.js";

/** What every call defines. */
const CORE = STATE_LUA + MEMBERS_LUA + LIMITS_LUA + TAKE_LUA;
/** What is defined when one of its functions is called, after all before it. */
const SELDOM = [LOG_LUA, FEW_LUA, FLEET_LUA, STAND_LUA, HEAR_LUA + SETTLE_LUA + TELL_LUA + LEASE_LUA, CHANGE_LUA];

/**
 * The script that carries out operations, in Lua: the same arithmetic as `core/` and `decide.ts`.
 *
 * `clock` is a Lua expression that gives the seconds and the microseconds; tests put one in its place that they control.
 */
export function scriptText(clock = 'redis.call("TIME")'): string {
  // A table that grows is dear.
  const names = Array.from(CORE.matchAll(/^function F\.(\w+)/gm), ([, name]) => `${name} = 0`);
  return `local clock = ${clock}
local max, min, ceil, floor, huge, sub, call = math.max, math.min, math.ceil, math.floor, math.huge, string.sub, redis.call
local wall, asked, known = clock[1] * 1000000 + clock[2], cjson.decode(ARGV[1]), {}
local now, op, states, wake, holds, write
local rules, F, loaded = asked.rules, { ${names.join(", ")} }, 0
${CORE}
local seldom = { ${SELDOM.map((text) => `function()\n${text}\nend`).join(", ")} }
setmetatable(F, { __index = function(_, name)
  repeat
    loaded = loaded + 1
    seldom[loaded]()
  until rawget(F, name)
  return F[name]
end })
${RUN_LUA}`;
}
