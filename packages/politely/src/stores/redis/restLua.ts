import { ALWAYS, MISSED, NEVER, RECORDER_LEASE } from "./constants.js";

/** Begins a script that changes keys on behalf of an asker, in Lua. */
const BEGIN_LUA = `
local sequence, numbers, words = ARGV[1] + 0, F.numbersOf(ARGV[2])
local states, time = F.begin(numbers[1], sequence)
if not states then return time end
`;

/** Keeps places for a process that lives, in Lua: `shared/renew.ts`. The reply is the time and which of the places are lost. */
export const RENEW_LUA = `${BEGIN_LUA}
local found, reply, first = {}, { time }, 3 + numbers[3]
for index = first, #ARGV do found[ARGV[index]] = false end
for number, state in ipairs(states) do
  F.endLapsedPlaces(state, time)
  for _, track in ipairs(state.tracks) do
    if number <= numbers[3] and track.id == ARGV[2 + number] then track.used = max(track.used, time + numbers[2]) end
  end
  for _, place in ipairs(state.places) do
    if found[place[1]] ~= nil then
      place[2] = max(place[2], time + numbers[2])
      found[place[1]] = true
    end
  end
end
for index = first, #ARGV do
  if not found[ARGV[index]] then reply[#reply + 1] = index - first end
end
F.writeAll(states)
return reply
`;

/** Leaves the lines of those who wait, or the fleet, in Lua: `shared/leave.ts`. */
export const LEAVE_LUA = `${BEGIN_LUA}
local function isOther(entry) return entry[1] ~= words and string.sub(entry[1], 1, #words + 1) ~= words .. "/" end
for _, state in ipairs(states) do
  local before = #state.members
  state.line, state.members = F.keepWhere(state.line, isOther), F.keepWhere(state.members, isOther)
  if #state.members < before and #state.members + #state.line + #state.places == 0 then
    for _, track in ipairs(state.tracks) do track.used = min(track.used, time) end
  end
end
F.writeAll(states)
return { time }
`;

/** Counts starts made without asking, in Lua: `shared/record.ts`. */
export const RECORD_LUA = `${BEGIN_LUA}
for index, state in ipairs(states) do
  local key = F.keyOf(F.numbersOf(ARGV[index + 2]))
  -- Who is wrong about the calendar does not begin another period for everybody.
  if time < key.from or time >= key.till then key.till = 0 end
  F.endLapsedPlaces(state, time)
  local own = F.ownTrack(state, key, time)
  own.used = max(own.used, time + ${RECORDER_LEASE})
  F.dropOldTracks(state, own, time)
  state.slow = max(state.slow, key.slow)
  local spent = ARGV[#states + 2 + index] and F.numbersOf(ARGV[#states + 2 + index])
  local rate, window, quota = key.rate, key.window, key.quota
  for age = 2, #numbers, 2 do
    local started, count = max(0, time - numbers[age]), numbers[age + 1]
    if spent then
      local from = (age - 2) / 2 * 3
      key.rate, key.window, key.quota = spent[from + 1], spent[from + 2], spent[from + 3]
    else
      key.rate, key.window, key.quota = rate * count, window * count, quota * count
    end
    state.units = state.units + key.rate
    state.starts = state.starts + count
    F.countStart(state, key, started, time)
    -- Nobody will tell when it was answered: it counts from itself.
    for _, track in ipairs(state.tracks) do
      if track.fromAnswer then
        F.logUnits(track, started, key.window)
        state.answered = max(state.answered, started)
      end
    end
    state.last = max(state.last, started)
  end
end
return F.finish(states, time, sequence, { time })
`;

/** Pauses, resumes or forgets, in Lua: `shared/change.ts`. */
export const SET_LUA = `${BEGIN_LUA}
local pause, reset = numbers[2], numbers[3]
for _, state in ipairs(states) do
  if pause >= 0 then state.paused = pause == 0 and ${NEVER} or min(${ALWAYS}, time + pause) end
  if reset > 0 then
    local since = max(time, state.last) + 1
    state.last, state.answered, state.line = ${NEVER}, ${NEVER}, {}
    for _, track in ipairs(state.tracks) do
      track.since, track.owed, track.owedAt = since, 0, 0
      for _, window in ipairs(track.windows) do window.log, window.sum = "", 0 end
      if reset == 2 then track.quotaUsed = 0 end
    end
  end
  if reset == 2 then state.cooldown, state.probe, state.headroom, state.paused = nil, "", nil, ${NEVER} end
end
if pause >= 0 or reset > 0 then return F.finish(states, time, sequence, { time }) end
F.writeAll(states)
return { time }
`;

/** Says how keys stand and changes nothing, in Lua: `shared/look.ts`. The reply is the time and a list for each key: see `readLook` in `wire.ts`. */
export const LOOK_LUA = `
local states, time = F.open(#ARGV)
if not states then return time end
local reply = { time }
for index, state in ipairs(states) do
  local key = F.keyOf(F.numbersOf(ARGV[index]))
  F.endLapsedPlaces(state, time)
  local own = F.ownTrack(state, key, time)
  F.dropOldTracks(state, own, time)
  local waiting = 0
  for _, ticket in ipairs(state.line) do
    if ticket[2] + ${MISSED} > time then waiting = waiting + 1 end
  end
  local found = F.nothingFound(time)
  found.index, found.list = index, {}
  F.eachBlock(found, state, key)
  local windows = {}
  for _, window in ipairs(own.windows) do
    windows[#windows + 1] = F.windowUsed(window, time)
    windows[#windows + 1] = F.windowReadyAt(window, time, 1, 0) or ${ALWAYS}
  end
  local cooldown = state.cooldown
  reply[index + 1] = {
    state.last, state.starts, state.throttled, #state.places, waiting, cooldown and max(0, cooldown.till - time) or 0,
    own.count > 0 and F.debtAt(own, time) or 0, windows, found.list,
  }
end
return reply
`;
