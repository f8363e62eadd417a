import { BEHIND_MOST_US } from "../decide.js";

/**
 * What is kept of a key, in Lua: one short string with what every key has, written with each decision, and parts of their own for what is long.
 *
 * | suffix of the name | part |
 * |---|---|
 * | none | `PL`, a version, `k`; then in MessagePack the fields of `F.write`, instants as distances from the last change |
 * | `\n1`, `\n2`, … | a log of starts, see `logLua.ts` |
 * | `\nw` `\nt` `\nc` | who waits: since when, until when they are to come, and what they cost if that is not 1 |
 * | `\nm` | processes, by when they were seen |
 * | `\np` `\no` `\nl` | places, their order, and when each of them lapses |
 * | `\na<asker>` | the last reply to an asker, if it is not the newest: that lies in the string itself |
 *
 * Instants in parts are less `shift`: a clock that is set back moves them all at once. A part lives as long as the string; a string without its
 * parts is not ours.
 *
 * A script is run from its first line with each call, so what it defines costs time: functions are in one table, and what is seldom needed is defined
 * where it is. `write` does nothing in a script that only looks.
 */
export const STATE_LUA = String.raw`
local max, min, ceil, floor, huge, sub = math.max, math.min, math.ceil, math.floor, math.huge, string.sub
local call, states, op = redis.call, {}, cjson.decode(ARGV[1])
local wall = clock[1] * 1000000 + clock[2]
local now = wall
function F.fail(code, what, more) error("POLITELY" .. code .. " " .. what .. " " .. (more or ""), 0) end
function F.part(state, letter) return state.name .. "\n" .. letter end
function F.parse(text, name)
  local changed, last, owed, seen, units, starts, throttled, token, held, keep, edge, count, per, burst, shift, line, costs,
    members, asker, number, heard, moved, reply, logs, rest = cmsgpack.unpack(sub(text, 5))
  local state = {
    name = name, changed = changed, last = changed - last, owed = owed, seen = changed - seen, units = units, starts = starts,
    throttled = throttled, token = changed - token, held = held, keep = changed + keep, edge = edge, shift = shift,
    measure = count > 0 and { count = count, per = per, burst = burst } or nil, line = line, costs = costs, members = members,
    asker = asker, number = number, heard = changed - heard, moved = moved, reply = reply, rest = rest,
  }
  for index = 1, #logs do
    local log = logs[index]
    state.logs = state.logs or {}
    state.logs[index] = {
      id = log[1], name = F.part(state, log[1]), shift = shift, span = log[2], grain = log[3], blur = log[4], first = log[5],
      size = log[6], capacity = log[7], base = log[8], total = log[9], last = changed - log[10], tidy = changed - log[11],
    }
  end
  -- A rest that is no table fails here, and with it a text that is not ours.
  state.holds = rest.holds
  return state
end
function F.read(index)
  local name = KEYS[index]
  local text = redis.pcall("GET", name)
  if type(text) == "table" then
    if string.find(text.err, "WRONGTYPE", 1, true) then F.fail("FOREIGN", index) end
    error(text.err, 0)
  end
  if text then
    local isRead, state = pcall(F.parse, text, name)
    if not isRead or sub(text, 1, 4) ~= "PL\2k" then
      local version = sub(text, 1, 2) == "PL" and string.byte(text, 3) or 2
      F.fail(version == 2 and "FOREIGN" or "VERSION", index, version)
    end
    if state.keep > wall then return state end
  end
  return {
    name = name, isNew = true, changed = 0, last = -huge, owed = 0, seen = -huge, units = 0, starts = 0, throttled = 0, token = 0,
    held = 0, keep = 0, edge = 0, shift = 0, line = 0, costs = 0, members = 0, asker = "", number = 0, heard = -huge,
    moved = 0, reply = "", rest = {},
  }
end
-- When a period of a calendar began and when it ends, in milliseconds. One that is running does not end sooner since the clock was set back.
function F.period(state, calendar)
  local ms, use, bounds = floor(wall / 1000), state.rest.quota, op.periods and op.periods[calendar] or {}
  if use and use.calendar == calendar and ms < use.ends then return use.period, use.ends end
  for at = 1, #bounds - 1 do
    if ms >= bounds[at] and ms < bounds[at + 1] then return bounds[at], bounds[at + 1] end
  end
  F.fail("PERIOD", string.format("%.0f", ms), calendar)
end
-- Reads all keys, and fails here if ever: before anything is written.
function F.open()
  for index = 1, #KEYS do
    local state = F.read(index)
    if state.changed > wall + ${BEHIND_MOST_US} then F.move(state, wall - state.changed) end
    states[index], now = state, max(now, state.changed)
    local key, quota = op.keys[index], state.rest.quota
    local own = key.rule.quota
    key.cost = key.cost or { rate = 1, window = 1, quota = 1 }
    if own then F.period(state, own.calendar) end
    if quota then F.period(state, quota.calendar) end
  end
  for _, state in ipairs(states) do
    state.changed = now
    if state.isNew and not isLook then
      local parts = {}
      for letter in string.gmatch("wtcmpol", ".") do parts[#parts + 1] = F.part(state, letter) end
      -- A server that is full removes, and then it would write as well.
      if call("EXISTS", unpack(parts)) > 0 then call("DEL", unpack(parts)) end
    end
  end
end
-- Writes all keys. Redis removes them a minute after they have to be kept, so that most writes need not say when.
function F.close()
  for index = 1, #states do
    local state, logs = states[index], {}
    for at, log in ipairs(state.logs or {}) do
      logs[at] = {
        log.id, log.span, log.grain, log.blur, log.first, log.size, log.capacity, log.base, log.total, now - log.last, now - log.tidy,
      }
    end
    local holds, measure, edge = state.rest.holds, state.measure, state.edge
    if holds and not (holds.incident or holds.paused or holds.headers) then state.rest.holds = nil end
    local isLate = state.keep > edge * 1000000 or state.hasGrown
    if isLate then edge = ceil(state.keep / 1000000) + 60 end
    local text = "PL\2k" .. cmsgpack.pack(now, now - state.last, state.owed, now - state.seen, state.units, state.starts,
      state.throttled, now - state.token, state.held, state.keep - now, edge, measure and measure.count or 0,
      measure and measure.per or 0, measure and measure.burst or 0, state.shift, state.line, state.costs, state.members,
      state.asker, state.number, now - state.heard, state.moved, state.reply, logs, state.rest)
    if isLate then
      local ms = edge * 1000 - floor(now / 1000)
      call("SET", state.name, text, "PX", ms)
      for letter in string.gmatch("wtcmpol", ".") do call("PEXPIRE", F.part(state, letter), ms) end
      for _, log in ipairs(state.logs or {}) do call("PEXPIRE", log.name, ms) end
    else call("SET", state.name, text, "KEEPTTL") end
  end
end
`;
