import { AHEAD_MOST, ALWAYS, NEVER, TRACKS_MOST } from "./constants.js";

/**
 * What the limits of a key have counted, in Lua: the arithmetic of `core/rate.ts`, `core/window.ts` and `shared/{tracks,places,moveBack}.ts`.
 *
 * The log of a window is a string of pairs of doubles, instant and units, the oldest first, with the sum of its units beside it. So a long log
 * is neither taken apart nor put together again when a start is added. A place is `{ id, expires, hold, units }`, a ticket in the line
 * `{ name, turn, joined }`, followed by what it wants of rates, windows and quotas and by how it stands (0 in line, 1 firm, 2 aside), unless
 * it is the usual: one unit of each, in line. A member is `{ name, seen }`.
 */
export const TRACKS_LUA = `
function F.keepWhere(list, isKept)
  local kept = {}
  for index = 1, #list do
    if isKept(list[index]) then kept[#kept + 1] = list[index] end
  end
  return kept
end

function F.debtAt(track, at)
  if at <= track.owedAt then return track.owed end
  local rest = track.owed - (at - track.owedAt) * track.count
  return rest > 0 and rest or 0
end

-- Units inside a window at the time. Forgets what has left it.
function F.windowUsed(window, time)
  local log, from = window.log, 1
  while from < #log do
    local at, units = struct.unpack("<dd", log, from)
    if at + window.per > time then break end
    window.sum = window.sum - units
    from = from + 16
  end
  if from > 1 then window.log = sub(log, from) end
  return window.sum
end

-- When so many more units fit beside those that are pending; nothing when only an answer can make room.
function F.windowReadyAt(window, time, cost, pending)
  local used = F.windowUsed(window, time)
  local excess = used + pending + cost - window.count
  if excess <= 0 then return time end
  if excess > used then return nil end
  for from = 1, #window.log, 16 do
    local at, units = struct.unpack("<dd", window.log, from)
    excess = excess - units
    if excess <= 0 then return at + window.per end
  end
end

function F.countedAt(window, started)
  return window.grain == 1 and started or ceil(started / window.grain) * window.grain
end

function F.log(window, counted, units)
  local log, from = window.log, 1
  if log ~= "" then
    local newest, there = struct.unpack("<dd", log, #log - 15)
    if newest >= counted then
      window.log = sub(log, 1, -17) .. struct.pack("<dd", newest, there + units)
      window.sum = window.sum + units
      return
    end
    -- Recorded starts may exceed the limit; twice the count is all that can ever matter.
    while from < #log do
      local _, oldest = struct.unpack("<dd", log, from)
      if window.sum - oldest < 2 * window.count then break end
      window.sum = window.sum - oldest
      from = from + 16
    end
    if from > 1 then log = sub(log, from) end
  end
  window.log = log .. struct.pack("<dd", counted, units)
  window.sum = window.sum + units
end

function F.logUnits(track, started, units)
  if units == 0 then return end
  for index = 1, #track.windows do
    local window = track.windows[index]
    F.log(window, F.countedAt(window, started), units)
  end
end

function F.turnPage(track, key, time)
  local isKnown = key.till > 0 and key.own.calendar == track.calendar
  if isKnown and key.index <= track.quotaIndex then
    track.quotaUntil = max(track.quotaUntil, key.till)
    return
  end
  if track.quotaUntil ~= ${NEVER} and (isKnown or time >= track.quotaUntil) then
    track.quotaUsed, track.quotaSince, track.quotaUntil = 0, time, ${NEVER}
  end
  if isKnown then track.quotaIndex, track.quotaUntil = key.index, key.till end
end

function F.unitsInFlight(state)
  local units = 0
  for index = 1, #state.places do units = units + state.places[index][4] end
  return units
end

-- A new track begins with what the others know.
function F.newTrack(state, key, time)
  local tracks, track = state.tracks, F.emptyTrack(key.words, time)
  -- What was started before, or granted ahead, was not counted here: it cannot be given back here either.
  track.since = max(time, state.last + 1)
  -- amount * times / by, rounded up, below 2^53. The product may have more digits than a double. So it is divided as on paper, bit by bit.
  local function scaled(amount, times, by)
    local rest = math.fmod(amount, by)
    local whole = (amount - rest) / by * times
    local quotient, over, bit = 0, 0, 2 ^ 52
    while rest > 0 and bit >= 1 do
      quotient = quotient * 2
      if over >= by - over then quotient, over = quotient + 1, over - (by - over) else over = over + over end
      if times >= bit then
        times = times - bit
        if over >= by - rest then quotient, over = quotient + 1, over - (by - rest) else over = over + rest end
      end
      bit = bit / 2
    end
    return min(${ALWAYS}, whole + quotient + (over > 0 and 1 or 0))
  end
  local function inheritDebt()
    local at, owed, hasBucket = time, 0, false
    for index = 1, #tracks do
      if tracks[index].count > 0 then at, hasBucket = max(at, tracks[index].owedAt), true end
    end
    for index = 1, #tracks do
      local other = tracks[index]
      local debt = other.count > 0 and F.debtAt(other, at) or 0
      -- So many policies forget one another in turn, and each turn would empty the larger buckets again.
      if #tracks >= ${TRACKS_MOST} and debt <= other.burst * other.per then
        debt = debt - max(0, other.burst - track.burst) * other.per
      end
      if debt > 0 then
        local same, full = scaled(debt, track.per, other.per), track.burst * track.per
        local grown = same + max(0, track.burst - other.burst) * track.per
        owed = max(owed, min(${ALWAYS}, max(same, min(grown, full))))
      end
    end
    if not hasBucket and state.last ~= ${NEVER} then
      at = max(time, state.last)
      owed = F.debtAt({ owed = track.per, owedAt = state.last, count = track.count }, at)
    end
    if owed > 0 then track.owed, track.owedAt = owed, at end
  end
  -- Units in a log that are later than an instant.
  local function unitsAfter(log, after)
    local sum = 0
    for from = 1, #log, 16 do
      local at, units = struct.unpack("<dd", log, from)
      if at > after then sum = sum + units end
    end
    return sum
  end
  -- For each window the starts in the log that knows most of them.
  local function inheritStarts()
    local known = {}
    for index = 1, #tracks do
      local other = tracks[index]
      -- Those in flight would have been counted at their answers.
      local pending = other.fromAnswer and not track.fromAnswer and struct.pack("<dd", time, F.unitsInFlight(state)) or ""
      for at = 1, #other.windows do known[#known + 1] = other.windows[at].log .. pending end
    end
    if #known == 0 and state.last ~= ${NEVER} then known[1] = struct.pack("<dd", state.last, 1) end
    for index = 1, #track.windows do
      local window = track.windows[index]
      local most, best = 0, ""
      for number = 1, #known do
        local units = unitsAfter(known[number], time - window.per)
        if units > most then most, best = units, known[number] end
      end
      for from = 1, #best, 16 do
        local at, units = struct.unpack("<dd", best, from)
        if at + window.per > time and units ~= 0 then F.log(window, F.countedAt(window, at), units) end
      end
    end
  end
  if track.count > 0 then inheritDebt() end
  inheritStarts()
  if track.quota > 0 then F.inheritBudget(track, tracks, time) end
  return track
end

-- What was spent by the same calendar; without one, the most that was spent in the period of another that runs.
function F.inheritBudget(track, tracks, time)
  local most = 0
  for index = 1, #tracks do
    local other = tracks[index]
    if other.quota > 0 and other.calendar == track.calendar then
      track.quotaIndex, track.quotaUsed = other.quotaIndex, other.quotaUsed
      track.quotaSince, track.quotaUntil = other.quotaSince, other.quotaUntil
      return
    end
    if other.quota > 0 and other.quotaUntil > time then most = max(most, other.quotaUsed) end
  end
  track.quotaUsed = most
end

-- The track of the key's own policy.
function F.ownTrack(state, key, time)
  local tracks = state.tracks
  for index = 1, #tracks do
    if tracks[index].id == key.id then
      key.own = tracks[index]
      return key.own
    end
  end
  key.own = F.newTrack(state, key, time)
  if #tracks >= ${TRACKS_MOST} then
    local first = 1
    for index = 2, #tracks do
      if tracks[index].used < tracks[first].used then first = index end
    end
    table.remove(tracks, first)
  end
  tracks[#tracks + 1] = key.own
  return key.own
end

-- Drops the tracks of policies that no process uses any more and under which nothing counts, but never the asker's own.
function F.dropOldTracks(state, own, time)
  if #state.tracks < 2 then return end
  state.tracks = F.keepWhere(state.tracks, function(track)
    return track == own or track.used > time or not F.isOver(track, state, time)
  end)
end

-- Whether nothing counts any more of what processes with this policy have started.
function F.isOver(track, state, time)
  if track.quota > 0 and track.quotaUsed > 0 and track.quotaUntil > time and track.quotaSince <= track.used then return false end
  if track.count > 0 then
    local owed, full = F.debtAt(track, time), track.burst * track.per
    if owed > full or (owed > 0 and time < track.used + ${AHEAD_MOST} + ceil(full / track.count)) then return false end
  end
  if track.fromAnswer and #state.places > 0 then return false end
  local last = (track.fromAnswer and max(track.used, state.answered) or track.used) + ${AHEAD_MOST}
  for index = 1, #track.windows do
    local window = track.windows[index]
    if time < last + window.per + window.grain and F.windowUsed(window, time) ~= 0 then return false end
  end
  return true
end

-- Adds to the debt of a bucket. While nobody uses its policy, others empty it, and no more.
function F.charge(track, units, at, time)
  local owedAt = max(track.owedAt, at)
  local rest = F.debtAt(track, owedAt)
  local most = track.used > time and ${ALWAYS} or max(rest, track.burst * track.per)
  track.owed, track.owedAt = min(most, rest + units * track.per), owedAt
end

function F.countStart(state, key, started, time)
  for index = 1, #state.tracks do
    local track = state.tracks[index]
    if track.count > 0 then F.charge(track, key.rate, started, time) end
    -- Nothing of it comes back to a policy that nobody uses, which may have had no room for it.
    if track.used <= time then track.since = max(track.since, started + 1) end
    if not track.fromAnswer then F.logUnits(track, started, key.window) end
    if track.quota > 0 then
      F.turnPage(track, key, started)
      track.quotaUsed = track.quotaUsed + key.quota
    end
  end
end

-- Frees a place. Where things count from the answer, they begin to now, with these units; with none if it was never sent.
function F.endPlace(state, index, at, units)
  table.remove(state.places, index)
  if not units then return end
  for track = 1, #state.tracks do
    if state.tracks[track].fromAnswer then
      F.logUnits(state.tracks[track], at, units)
      state.answered = max(state.answered, at)
    end
  end
end

function F.endLapsedPlaces(state, time)
  local places = state.places
  while #places > 0 do
    local first, firstAt
    for index = 1, #places do
      local at = min(places[index][2], places[index][3])
      if at <= time and not (firstAt and at >= firstAt) then first, firstAt = index, at end
    end
    if not first then return end
    F.endPlace(state, first, firstAt, places[first][4])
  end
end

-- Moves everything a key remembers back, as if it had happened that much earlier on the clock.
function F.moveBack(state, by)
  local function back(at)
    if at == ${NEVER} or at == ${ALWAYS} then return at end
    return max(0, at - by)
  end
  local function moveBack(fields, ...)
    for _, name in ipairs({ ... }) do fields[name] = back(fields[name]) end
  end
  local since = max(state.seen, state.last) + 1
  moveBack(state, "seen", "last", "answered", "paused", "memo")
  if state.cooldown then moveBack(state.cooldown, "till", "began", "probeAt") end
  if state.headroom then moveBack(state.headroom, "till", "hold", "started") end
  state.line = {}
  for _, place in ipairs(state.places) do moveBack(place, 2, 3) end
  for _, member in ipairs(state.members) do moveBack(member, 2) end
  for _, track in ipairs(state.tracks) do
    moveBack(track, "used", "owedAt", "quotaSince")
    track.since = max(track.since, since)
    for _, window in ipairs(track.windows) do
      local log, most = window.log, window.count
      -- Nothing is too much here.
      window.log, window.sum, window.count = "", 0, ${ALWAYS}
      for from = 1, #log, 16 do
        local at, units = struct.unpack("<dd", log, from)
        F.log(window, back(at), units)
      end
      window.count = most
    end
  end
end
`;
