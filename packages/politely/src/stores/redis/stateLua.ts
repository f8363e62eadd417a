import { BEHIND_MOST_US } from "../decide.js";
import { MEMORY_US } from "../operations.js";

/**
 * The fields of a key that every key has, as Lua names them. They are written in this order, behind the instant of the last change.
 *
 * `ago` are instants, written as distances from that change: a server whose clock is set back moves them all at once, by reading them from another
 * instant. `since` are written the same way, but stay where they are. `count`, `per` and `burst` are the rate that the debt is measured in; 0: none. `line`, `costs` and
 * `members` are sizes of parts, `edge` is the second up to which Redis keeps the key.
 */
const FIELDS = {
  ago: ["last", "seen", "heard", "origin"],
  since: ["token", "keep"],
  plain: "owed units starts throttled held edge count per burst line costs members number asker reply".split(" "),
};

/** The same for each log of starts: see `logLua.ts`. */
const LOG_FIELDS = {
  ago: ["last", "tidy"],
  plain: ["grain", "span", "blur", "size", "before", "total"],
};

const names = (fields: Readonly<Record<string, readonly string[]>>): string => Object.values(fields).flat().join(", ");
const each = (fields: readonly string[], write: (name: string) => string): string => fields.map(write).join(", ");

/**
 * What is kept of a key, in Lua: one short string with what every key has, written with each decision, and parts of their own for what is long.
 *
 * | suffix of the name | part |
 * |---|---|
 * | none | `PL`, a version, `k`; then in MessagePack the instant of the last change, the fields above, the logs, and what few keys have (`rest`) |
 * | `\n1`, `\n<grain>/<period>` | logs of starts, see `logLua.ts` |
 * | `\nw` `\nt` `\nc` | who waits: since when, until when they are to come, and what they cost if that is not 1 |
 * | `\nm` | processes, by when they were seen |
 * | `\np` `\no` | places, and their order |
 * | `\na<asker>` | the last reply to an asker, if it is not the newest: that lies in the string itself |
 *
 * Instants in parts are distances from the key's `origin`. A part lives as long as the string; a string without its parts is not ours.
 *
 * A script is run from its first line with each call, so what it defines costs time: functions are in one table, and what is seldom needed is defined
 * when it is called for the first time. `write` does nothing while an operation only looks.
 */
export const STATE_LUA = String.raw`
local NOBODY, ONE = { requests = 0, rate = 0, window = 0, quota = 0 }, { rate = 1, window = 1, quota = 1 }
function F.fail(code, what) error("POLITELY" .. code .. " " .. what, 0) end
function F.part(state, letter) return state.name .. "\n" .. letter end
function F.logName(name, grain, span) return name .. "\n" .. (grain == 1 and grain or grain .. "/" .. span) end
function F.parse(text, name)
  local changed, ${names(FIELDS)}, logs, rest = cmsgpack.unpack(sub(text, 5))
  local base = changed > wall + ${BEHIND_MOST_US} and wall or changed
  if rest then F.turn(rest, base) end
  for index = 1, #logs do
    local ${names(LOG_FIELDS)} = unpack(logs[index])
    logs[index] = {
      name = F.logName(name, grain, span), origin = base - origin, kept = size, tail = {}, from = 0, to = 0,
      ${each(LOG_FIELDS.ago, (field) => `${field} = base - ${field}`)}, ${each(LOG_FIELDS.plain, (field) => `${field} = ${field}`)},
    }
  end
  return {
    name = name, changed = base, logs = logs[1] and logs, rest = rest or {}, ${each(FIELDS.ago, (field) => `${field} = base - ${field}`)},
    ${each(FIELDS.since, (field) => `${field} = changed - ${field}`)}, ${each(FIELDS.plain, (field) => `${field} = ${field}`)},
  }
end
-- What lies under a name, as "parse" reads it; nil where nothing does.
function F.read(name, mark, parse)
  local text = redis.pcall("GET", name)
  if not text then return nil end
  if type(text) == "table" then
    if string.find(text.err, "WRONGTYPE", 1, true) then F.fail("FOREIGN", name) end
    error(text.err, 0)
  end
  local isRead, value = pcall(parse, text, name)
  if isRead and sub(text, 1, 4) == "PL\2" .. mark then return value end
  local version = sub(text, 1, 2) == "PL" and string.byte(text, 3) or 2
  F.fail(version == 2 and "FOREIGN" or "VERSION " .. version, name)
end
function F.stateOf(name)
  local state = F.read(name, "k", F.parse)
  if state and state.keep > wall then return state end
  return {
    name = name, isNew = true, changed = 0, rest = {}, ${each(["last", "seen", "heard"], (field) => `${field} = -huge`)}, origin = wall,
    ${each([...FIELDS.since, ...FIELDS.plain.slice(0, -2)], (field) => `${field} = 0`)}, asker = "", reply = "",
  }
end
-- Reads all keys of an operation, and fails here if ever: before anything is written.
function F.open(from)
  states, now = {}, wall
  for index, key in ipairs(op.keys) do
    local name = KEYS[from + index]
    local state = known[name] or F.stateOf(name)
    states[index], now, state.reader, state.slow = state, max(now, state.changed), state.reader or op, nil
    key.rule, key.cost = rules[key.rule], key.cost or ONE
    if key.rule.quota then F.period(state, key.rule.quota.calendar) end
    if state.rest.quota then F.period(state, state.rest.quota.calendar) end
  end
  for _, state in ipairs(states) do
    known[state.name], state.changed = state, now
    if state.isNew and op.kind ~= "look" then
      local parts = {}
      state.isNew = nil
      for letter in string.gmatch("wtcmpo", ".") do parts[#parts + 1] = F.part(state, letter) end
      -- A server that is full removes, and then it would write as well.
      if call("EXISTS", unpack(parts)) > 0 then call("DEL", unpack(parts)) end
    end
  end
end
-- Writes all keys once their operations are done. Redis removes them a minute after they have to be kept, so that most writes need not say when.
function F.close()
  for _, state in pairs(known) do
    local now, logs, rest = state.changed, {}, next(state.rest) and state.rest
    for at, log in ipairs(state.logs or {}) do
      state.isGrown = state.isGrown or log.kept == 0
      if log.tail[1] then F.flush(log) end
      logs[at] = { ${each(LOG_FIELDS.ago, (field) => `now - log.${field}`)}, ${each(LOG_FIELDS.plain, (field) => `log.${field}`)} }
    end
    local isLate = state.keep > state.edge * 1000000 or state.isGrown
    if isLate then state.edge = ceil(state.keep / 1000000) + 60 end
    if rest then F.turn(rest, now) end
    local text = "PL\2k" .. cmsgpack.pack(now, ${each([...FIELDS.ago, ...FIELDS.since], (field) => `now - state.${field}`)},
      ${each(FIELDS.plain, (field) => `state.${field}`)}, logs, rest or false)
    if isLate then
      local ms = state.edge * 1000 - floor(now / 1000)
      call("SET", state.name, text, "PX", ms)
      for letter in string.gmatch("wtcmpo", ".") do call("PEXPIRE", F.part(state, letter), ms) end
      for _, log in ipairs(state.logs or {}) do call("PEXPIRE", log.name, ms) end
    else call("SET", state.name, text, "KEEPTTL") end
  end
  known = {}
end
-- The reply of before to an operation that comes again. That to the newest asker lies with the key, older ones apart.
function F.again()
  local state = states[1]
  local number, heard, reply = state.number, state.heard, state.reply
  if state.asker ~= op.asker then
    -- A new key has none, though one may be left of the key before it.
    local text = state.keep > 0 and call("GET", F.part(state, "a" .. op.asker))
    if not text then return nil end
    number, heard, reply = cmsgpack.unpack(text)
    heard = heard + state.origin
  end
  return number >= op.number and { now, heard - now, cmsgpack.unpack(reply) }
end
function F.remember(reply)
  local state = states[1]
  local left = ceil((${MEMORY_US} - max(0, now - state.heard)) / 1000)
  if state.asker ~= op.asker and state.asker ~= "" and left > 0 then
    call("SET", F.part(state, "a" .. state.asker), cmsgpack.pack(state.number, state.heard - state.origin, state.reply), "PX", left)
  end
  state.asker, state.number, state.heard, state.reply = op.asker, op.number, now, cmsgpack.pack(reply)
end
`;

/**
 * Carries out the operations of a call, in Lua, each on the keys that follow those of the one before. A reply has the time, that from which its
 * instants count, and what it says, in the order of `REPLIES` in `wire.ts`.
 */
export const RUN_LUA = `
local function act()
  -- Whose turn has come takes the next start, whoever else is late.
  local since, isDue, members = huge, false, 0
  wake = {}
  for index, state in ipairs(states) do
    local key = op.keys[index]
    if op.reset then F.forget(state) end
    if state.line > 0 and op.kind == "take" then
      local stood, turn = F.leave(state, op.asker)
      since, isDue = min(since, stood), isDue or turn <= now + op.horizonUs
    end
    if state.line > 0 and (op.kind == "take" or op.kind == "look") then F.dropLate(state) end
    if op.kind ~= "renew" then F.prepare(state, key.rule, key.slowUs) end
    if op.process and not op.isLeaving then F.see(state, op.process) end
    members = max(members, state.members)
  end
  local reply = F[op.kind](members, since, isDue)
  for index, state in ipairs(op.kind ~= "look" and states or {}) do F.keep(state, op.keys[index].rule) end
  if wake[1] then F.publish() end
  return reply
end
local function run(from)
  local isLook, isLease = op.kind == "look", op.kind == "lease"
  if isLook or isLease then F.close() end
  if isLease then return { wall, 0, F.lease(KEYS[from + 1]) } end
  write = isLook and function() end or call
  F.open(from)
  local isOnce = op.asker and not op.isFree
  local reply = isOnce and F.again()
  if not reply then
    reply = { now, 0, act() }
    if isOnce then F.remember(reply[3]) end
  end
  -- What a look has brought up to date is not written.
  if isLook then known = {} end
  return reply
end
local replies, from = {}, 0
for which, one in ipairs(asked.ops) do
  op = one
  local isDone, reply = pcall(run, from)
  replies[which] = isDone and reply or { type(reply) == "table" and reply.err or reply }
  -- A key that one has read and not finished is left as it was; what those before have changed is written.
  for name, state in pairs(isDone and {} or known) do
    if state.reader == one then known[name] = nil end
  end
  from = from + (op.keys and #op.keys or 1)
end
F.close()
return replies
`;
