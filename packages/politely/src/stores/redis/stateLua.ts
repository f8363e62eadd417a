import { INCIDENT_MEMORY, KEEP_MOST, MEMBER_MEMORY, MINUTE, NEVER } from "./constants.js";

/**
 * Reads and writes the states of keys, in Lua. The fields are those of `KeyState`, with shorter names; `keep` and `edge` are added.
 *
 * A value begins with `PL`, a version and a letter for its form. `g` has everything: numbers as doubles, then what few keys have in MessagePack. `h` is
 * short, for a key whose only limits are a rate and a gap and whose last operation was a start granted at once: 14 doubles, the words of the
 * operation that made it, and the processes seen lately. `keep` is the instant until which the state counts. `edge` is when Redis removes the key:
 * `keep` or up to a minute later, so that most writes leave it as it is, which is cheaper.
 *
 * Numbers of an operation come as JSON, which is read exactly, and are kept as doubles: `tostring` would round microseconds.
 *
 * A script is run from its first line with each call, so what it defines costs time. All functions are in one table, since a function that refers to
 * many variables is dear to make, and what is seldom needed is defined where it is.
 */
export const STATE_LUA = String.raw`
local max, min, ceil, sub = math.max, math.min, math.ceil, string.sub

-- "[1,2]rest" becomes {1, 2} and "rest".
function F.numbersOf(text)
  local close = string.find(text, "]", 1, true)
  return cjson.decode(sub(text, 1, close)), sub(text, close + 1)
end

-- A track that has counted nothing, from the words of a rule: "[numbers]calendar\nid".
function F.emptyTrack(words, time)
  local numbers, names = F.numbersOf(words)
  local line = string.find(names, "\n", 1, true)
  local track = {
    id = sub(names, line + 1), calendar = sub(names, 1, line - 1),
    gap = numbers[1], count = numbers[2], per = numbers[3], burst = numbers[4], quota = numbers[5],
    concurrency = numbers[6], fromAnswer = numbers[7] == 1, windows = {},
    used = time, since = time, owed = 0, owedAt = 0,
    quotaIndex = ${NEVER}, quotaUsed = 0, quotaSince = time, quotaUntil = ${NEVER},
  }
  for index = 8, #numbers, 3 do
    track.windows[(index - 5) / 3] =
      { count = numbers[index], per = numbers[index + 1], grain = numbers[index + 2], sum = 0, log = "" }
  end
  return track
end

function F.freshKey()
  return {
    seen = now, last = ${NEVER}, answered = ${NEVER}, units = 0, starts = 0, throttled = 0, token = 0, slow = 0, held = 0,
    paused = ${NEVER}, memo = ${NEVER}, keep = 0, edge = 0, probe = "", tracks = {}, places = {}, line = {}, members = {},
  }
end

-- How long a key must be kept from the time it was last seen, so that forgetting it is no gift.
function F.keepFor(state)
  local places, tracks, line, members = state.places, state.tracks, state.line, state.members
  local till = max(state.seen, state.paused, state.memo + ${MINUTE})
  if state.cooldown then till = max(till, state.cooldown.till + ${INCIDENT_MEMORY}) end
  if state.headroom then till = max(till, state.headroom.till) end
  local ends = ${NEVER}
  for index = 1, #places do ends = max(ends, min(places[index][2], places[index][3])) end
  local began = max(state.last, state.answered)
  till = max(till, began + state.slow)
  for index = 1, #tracks do
    local track = tracks[index]
    till = max(till, track.used, (track.fromAnswer and max(began, ends) or began) + max(track.gap, state.slow))
    if track.count > 0 then till = max(till, track.owedAt + ceil(track.owed / track.count)) end
    if track.quotaUsed > 0 then till = max(till, track.quotaUntil) end
    for at = 1, #track.windows do
      local window = track.windows[at]
      if window.log ~= "" then till = max(till, struct.unpack("<d", window.log, #window.log - 15) + window.per) end
      if track.fromAnswer and ends ~= ${NEVER} then till = max(till, ends + window.per) end
    end
  end
  till = max(till, ends)
  for index = 1, #line do till = max(till, line[index][2]) end
  for index = 1, #members do till = max(till, members[index][2] + ${MEMBER_MEMORY}) end
  return min(${KEEP_MOST}, till - state.seen + ${MINUTE})
end

function F.readFull(value)
  local seen, last, answered, units, starts, throttled, token, slow, paused, memo, keep, edge, trackCount, at =
    struct.unpack("<ddddddddddddB", value, 5)
  local tracks, places, line, members, probe, cooldown, headroom, held = {}, nil, nil, nil, "", nil, nil, 0
  for index = 1, trackCount do
    local gap, count, per, burst, quota, concurrency, fromAnswer, used, since, owed, owedAt, quotaIndex, quotaUsed, quotaSince,
      quotaUntil, windowCount, id, calendar, after = struct.unpack("<ddddddBddddddddBI4c0I4c0", value, at)
    local windows = {}
    for window = 1, windowCount do
      local windowUnits, windowPer, grain, sum, log, further = struct.unpack("<ddddI4c0", value, after)
      windows[window] = { count = windowUnits, per = windowPer, grain = grain, sum = sum, log = log }
      after = further
    end
    tracks[index] = {
      id = id, calendar = calendar, gap = gap, count = count, per = per, burst = burst, quota = quota,
      concurrency = concurrency, fromAnswer = fromAnswer == 1, windows = windows, used = used, since = since, owed = owed,
      owedAt = owedAt, quotaIndex = quotaIndex, quotaUsed = quotaUsed, quotaSince = quotaSince, quotaUntil = quotaUntil,
    }
    at = after
  end
  if at <= #value then
    places, line, members, probe, cooldown, headroom, held = unpack(cmsgpack.unpack(sub(value, at)))
  end
  return {
    seen = seen, last = last, answered = answered, units = units, starts = starts, throttled = throttled, token = token,
    slow = slow, held = held or 0, paused = paused, memo = memo, keep = keep, edge = edge, tracks = tracks, places = places or {},
    line = line or {}, members = members or {}, probe = probe, cooldown = cooldown or nil, headroom = headroom or nil,
  }
end

function F.readShort(value)
  local _, length, last, units, starts, owed, edge, _, _, _, _, _, answered, throttled, slow, since =
    struct.unpack("<I4I4dddddddddddddd", value)
  local numbers, words = F.numbersOf(sub(value, 121, 120 + length))
  local track = F.emptyTrack(words, since)
  track.used, track.owed, track.owedAt = last + numbers[5], owed, last
  local state = F.freshKey()
  state.seen, state.last, state.token, state.memo = last, last, last, last
  state.answered, state.units, state.starts, state.throttled = answered, units, starts, throttled
  state.slow, state.edge, state.tracks = slow, edge, { track }
  if #value > 120 + length then state.members = cmsgpack.unpack(sub(value, 121 + length)) end
  state.keep = last + F.keepFor(state)
  return state
end

-- The state of a key, or nothing and why not.
function F.read(index)
  local value = redis.pcall("GET", KEYS[index])
  if not value then return F.freshKey() end
  if type(value) ~= "string" then
    local isForeign = string.find(value.err, "WRONGTYPE", 1, true)
    return nil, isForeign and redis.error_reply("POLITELYFOREIGN " .. index) or value
  end
  local p, l, version, form = string.byte(value, 1, 4)
  local isOurs = p == 80 and l == 76 and version
  if isOurs and version > 1 then return nil, redis.error_reply("POLITELYNEWER " .. index .. " " .. version) end
  local reader = isOurs and (form == 103 and F.readFull or form == 104 and F.readShort)
  local isRead, state = false, nil
  if reader then isRead, state = pcall(reader, value) end
  if not isRead then return nil, redis.error_reply("POLITELYFOREIGN " .. index) end
  return state.keep > now and state or F.freshKey()
end

-- Writes a value, and says when Redis will remove it: at "edge" as before if that is late enough.
function F.edgeFor(edge, needed)
  return needed <= edge and edge or now + (ceil((needed - now) / 1000) + 60000) * 1000
end

function F.put(key, value, edge, needed)
  if needed <= edge then redis.call("SET", key, value, "KEEPTTL")
  else redis.call("SET", key, value, "PX", ceil((needed - now) / 1000) + 60000) end
end

function F.write(index, state)
  local keep, places, line, members = now + F.keepFor(state), state.places, state.line, state.members
  local parts = { "PL\1g" .. struct.pack("<ddddddddddddB", state.seen, state.last, state.answered, state.units, state.starts,
    state.throttled, state.token, state.slow, state.paused, state.memo, keep, F.edgeFor(state.edge, keep), #state.tracks) }
  for at = 1, #state.tracks do
    local track = state.tracks[at]
    local windows = track.windows
    parts[#parts + 1] = struct.pack("<ddddddBddddddddBI4c0I4c0", track.gap, track.count, track.per, track.burst, track.quota,
      track.concurrency, track.fromAnswer and 1 or 0, track.used, track.since, track.owed, track.owedAt, track.quotaIndex,
      track.quotaUsed, track.quotaSince, track.quotaUntil, #windows, #track.id, track.id, #track.calendar, track.calendar)
    for window = 1, #windows do
      local counted = windows[window]
      parts[#parts + 1] =
        struct.pack("<ddddI4c0", counted.count, counted.per, counted.grain, counted.sum, #counted.log, counted.log)
    end
  end
  if #places + #line + #members + state.held > 0 or state.probe ~= "" or state.cooldown or state.headroom then
    parts[#parts + 1] =
      cmsgpack.pack({ places, line, members, state.probe, state.cooldown or false, state.headroom or false, state.held })
  end
  F.put(KEYS[index], table.concat(parts), state.edge, keep)
end
`;
