import { FIRST_HOLD, INCIDENT_MEMORY } from "./constants.js";

/** The numbers by which scripts know the kinds of answers. */
export const ANSWER_KINDS = {
  success: 0,
  rate_limited: 1,
  server_error: 2,
  timeout: 3,
  neutral: 4,
  unused: 5,
} as const;

/** And the kinds of backoff. */
export const BACKOFF_KINDS = { none: 0, linear: 1, exponential: 2 } as const;

/** Holds a key after a bad answer, in Lua: `afterBadAnswer` of `core/cooldown.ts`. */
const HOLD_LUA = `
local function ladderFor(key, isThrottle, step)
  if isThrottle then return key.numbers[16 + min(step, #key.numbers - 16)] end
  if key.backoff == ${BACKOFF_KINDS.none} then return 0 end
  local factor = key.backoff == ${BACKOFF_KINDS.linear} and step or 2 ^ min(step - 1, 60)
  local steady = min(key.numbers[15], key.numbers[14] * factor)
  return steady + ceil(steady * key.numbers[16] * key.random)
end

-- Returns the step of the ladder, or 0 when it holds nothing.
local function hold(state, key, isProbe)
  if not key.isHeld then return 0 end
  local known = state.cooldown
  if known and time >= known.till + ${INCIDENT_MEMORY} then known = nil end
  local isThrottle = key.kind == ${ANSWER_KINDS.rate_limited}
  if key.retryAfter == 0 and not isThrottle and key.backoff == ${BACKOFF_KINDS.none} then
    if state.cooldown and isProbe then state.probe, state.cooldown.probe = "", "done" end
    return 0
  end
  local isSame = known ~= nil and granted <= known.began
  local throttleRaised = isSame and known.throttleRaised
  local errorRaised = isSame and known.errorRaised
  local throttleStep, errorStep = known and known.throttleStep or 0, known and known.errorStep or 0
  if isThrottle and not throttleRaised then throttleStep = throttleStep + 1 end
  if not isThrottle and not errorRaised then errorStep = errorStep + 1 end
  -- A success may have reset the step in the middle of the incident; a late bad answer still holds for the first one.
  local step = max(1, isThrottle and throttleStep or errorStep)
  local till = time + (key.retryAfter > 0 and key.retryAfter or ladderFor(key, isThrottle, step))
  if known then till = max(till, known.till) end
  state.probe = ""
  state.cooldown = {
    till = till, began = isSame and known.began or time, throttleStep = throttleStep, errorStep = errorStep,
    throttleRaised = isThrottle or throttleRaised, errorRaised = not isThrottle or errorRaised,
    probe = till > time and "due" or "done", probeAt = 0,
    because = known and till == known.till and known.because or key.because,
  }
  return step
end
`;

/** Hears what a site says is left, in Lua: `core/headroom.ts`. */
const BUDGET_LUA = `
local function hearBudget(state, key, later)
  local known, from, till = state.headroom, started, time + key.reset
  local isLate = known and known.till > time and started < known.started
  local left = key.remaining - (isLate and 0 or later)
  local gap = left > 0 and ceil(key.reset / left) or 0
  local hold = left > 0 and 0 or till
  if isLate then
    if gap <= known.gap and hold <= known.hold then return end
    gap, hold, till, from = max(gap, known.gap), max(hold, known.hold), max(till, known.till), known.started
  end
  state.headroom = { gap = gap, hold = hold, till = till, started = from, because = key.because }
end
`;

/** Gives back what a start took, in Lua: `giveBack` of `shared/settle.ts`. */
const BACK_LUA = `
local emptied = {}

-- Takes units out of the pair that the start was counted in, if it is still there.
local function unlog(window, at, units)
  local log, counted = window.log, F.countedAt(window, at)
  if counted + window.per <= time then return end
  local low, high = 0, #log / 16
  while low < high do
    local middle = math.floor((low + high) / 2)
    if struct.unpack("<d", log, 16 * middle + 1) < counted then low = middle + 1 else high = middle end
  end
  if low == #log / 16 then return end
  local pair, there = struct.unpack("<dd", log, 16 * low + 1)
  local left = max(0, there - units)
  window.sum = window.sum + left - there
  window.log = sub(log, 1, 16 * low) .. struct.pack("<dd", pair, left) .. sub(log, 16 * low + 17)
  if left == 0 and there > 0 then emptied[#emptied + 1] = { window, low } end
end

-- Pairs without units go once everything is back: until then nothing may be taken from the pair behind them in their stead.
local function dropEmptied()
  table.sort(emptied, function(one, other) return one[2] > other[2] end)
  for index = 1, #emptied do
    local window, low = emptied[index][1], emptied[index][2]
    window.log = sub(window.log, 1, 16 * low) .. sub(window.log, 16 * low + 17)
  end
  emptied = {}
end

-- What was taken at an instant, as much as the other starts allow; to a track that does not know of it, nothing.
local function giveBackAt(state, at, rate, window, quota, later)
  for index = 1, #state.tracks do
    local track = state.tracks[index]
    local isKnown = at >= track.since
    if track.count > 0 and (rate < 0 or (isKnown and rate > 0)) then
      -- Brought up to now, then changed.
      F.charge(track, max(0, -rate), time, time)
      local owed = track.owed
      if rate > 0 then track.owed = max(owed - rate * track.per, min(owed, later * track.per), 0) end
    end
    if window ~= 0 and not track.fromAnswer and (isKnown or window < 0) then
      for number = 1, #track.windows do unlog(track.windows[number], at, window) end
    end
    local isSamePeriod = isKnown and at >= track.quotaSince
    if track.quota > 0 and (isSamePeriod or quota < 0) then track.quotaUsed = max(0, track.quotaUsed - quota) end
  end
end

-- Of a start, or of each of several that were never sent: from the sixth number on, instants and how many there were at each.
local function giveBack(state, list, later)
  local rate, window, quota = list[3], list[4], list[5]
  if rate < 0 then state.units = state.units - rate end
  for pair = 6, #numbers, 2 do
    local count = numbers[pair + 1]
    giveBackAt(state, numbers[pair], rate * count, window * count, quota * count, later)
    if isUnused then state.starts = max(0, state.starts - count) end
  end
  dropEmptied()
  if isUnused and later == 0 and state.last == started then state.last = list[2] end
end
`;

/** Takes a start back or hears its answer, in Lua: `shared/settle.ts`. The reply is the time, and for each key how long it cools down and the step. */
export const SETTLE_LUA = `
local sequence, numbers, place = ARGV[1] + 0, F.numbersOf(ARGV[2])
local started, isOver, isUnused, granted = numbers[2], numbers[3] == 1, numbers[4] == 1, numbers[5]
-- For a cooldown a start counts from when it was granted, which may be before its instant; a recorded one was not.
granted = granted == 0 and started or min(started, granted)
local states, time = F.begin(numbers[1], sequence)
if not states then return time end

local function settleKeyOf(text)
  local list, because = F.numbersOf(text)
  return {
    numbers = list, kind = list[7], retryAfter = list[8], random = list[9], remaining = list[10], reset = list[11],
    isHeld = list[12] == 1, backoff = list[13], because = because,
  }
end
${BACK_LUA}${BUDGET_LUA}${HOLD_LUA}
-- Learns from an answer. Returns the step of the ladder when it made the key cool down, else 0.
local function hear(state, key, later)
  local isProbe = state.probe ~= "" and state.probe == place
  local kind, cooldown = key.kind, state.cooldown
  if key.remaining >= 0 then hearBudget(state, key, later) end
  if kind == ${ANSWER_KINDS.rate_limited} then state.throttled = state.throttled + 1 end
  if kind >= ${ANSWER_KINDS.rate_limited} and kind <= ${ANSWER_KINDS.timeout} then return hold(state, key, isProbe) end
  if not cooldown then return 0 end
  local isUnsent = kind == ${ANSWER_KINDS.unused}
  if kind ~= ${ANSWER_KINDS.success} then
    if isProbe and (isOver or isUnsent) then state.probe, cooldown.probe = "", isUnsent and "due" or "done" end
  elseif granted <= cooldown.began then
    if isProbe then state.probe, cooldown.probe = "", "done" end
  else
    state.probe = ""
    if time >= cooldown.till then state.cooldown = nil else cooldown.throttleStep, cooldown.errorStep = 0, 0 end
  end
  return 0
end

local reply = { time }
for index = 1, #states do
  local state, key = states[index], settleKeyOf(ARGV[index + 2])
  local list = key.numbers
  F.endLapsedPlaces(state, time)
  local later = max(0, state.units - list[1])
  giveBack(state, list, later)
  for at = 1, isOver and #state.places or 0 do
    if state.places[at][1] == place then
      -- Time may have stood still since it was granted ahead: it is not answered before it started.
      local answered = max(time, min(started, state.last))
      F.endPlace(state, at, answered, not isUnused and list[6] or nil)
      if not isUnused and started > 0 then
        -- "heldAfter" of shared/settle.ts.
        local known, lasted = state.held, answered - started
        if known == 0 then state.held = max(1, min(lasted, ${FIRST_HOLD}))
        elseif lasted < known / 2 then state.held = max(1, lasted)
        elseif lasted < known then state.held = ceil((known + lasted) / 2)
        else state.held = known + ceil(min(lasted - known, known) / 2) end
      end
      break
    end
  end
  local step = hear(state, key, later)
  reply[2 * index] = step > 0 and max(0, (state.cooldown and state.cooldown.till or time) - time) or 0
  reply[2 * index + 1] = step
end
return F.finish(states, time, sequence, reply)
`;
