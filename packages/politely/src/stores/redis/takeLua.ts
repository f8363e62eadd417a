import { STOP_KINDS } from "./blocksLua.js";
import {
  AGEING,
  ALWAYS,
  ASK_AGAIN,
  INCIDENT_MEMORY,
  LINE_MOST,
  MEMBER_MEMORY,
  MEMBERS_MOST,
  MINUTE,
  MISSED,
  NEVER,
  POLL_MOST,
  STANDBY,
} from "./constants.js";
import { LINE_LUA } from "./lineLua.js";

/** The first four bytes of a value as a number. */
function formOf(text: string): number {
  let form = 0;
  for (let index = text.length - 1; index >= 0; index--) form = form * 256 + text.charCodeAt(index);
  return form;
}

const QUOTA = STOP_KINDS.indexOf("quota");
/** From here on in the list: what holds a key that is nobody's turn to end. */
const COOLDOWN = STOP_KINDS.indexOf("cooldown");
const SHORT_STATE = formOf("PL\u0001h");
const SHORT_MEMO = formOf("PM\u0001h");

/**
 * The short way of a take, in Lua: one key with a rate and perhaps a gap, nobody waiting, one start that is possible now.
 *
 * The state must be in its short form and have the words of this very operation in it, which say that it is one of this kind; see `isShort`. Whatever
 * is not as expected is left to the rest of the script, as is a state or a memo that has to be kept for longer than Redis will.
 */
function shortTake(names: {
  readonly key: string;
  readonly memoKey: string;
  readonly number: string;
  readonly done: string;
}): string {
  const { key, memoKey, number, done } = names;
  return `
local value = redis.pcall("GET", ${key})
if type(value) == "string" and ${memoKey} and string.find(value, spec, 121, true) == 121 then
  local form, length, last, units, starts, owed, edge, least, gap, count, per, burst = struct.unpack("<I4I4dddddddddd", value)
  local since = now - last
  if form == ${SHORT_STATE} and length == #spec and since > 0 and since < ${MINUTE} and since >= gap and units < 1e14 then
    owed = owed - since * count
    if owed < 0 then owed = 0 end
    local memo = owed <= (burst - 1) * per and redis.pcall("GET", ${memoKey})
    if type(memo) == "string" and #memo >= 20 then
      local memoForm, memoEdge, before = struct.unpack("<I4dd", memo)
      local sequence = ${number} + 0
      owed = owed + per
      units = units + 1
      -- The last letter of a memo is that of the form of its reply, and does not matter here.
      if memoForm % 16777216 == ${SHORT_MEMO % 2 ** 24} and before < sequence and memoEdge >= now + ${MINUTE}
        and now + least <= edge and now + ${MINUTE} + math.ceil(owed / count) <= edge then
        redis.call("SET", ${key}, struct.pack("<I4I4ddddd", form, length, now, units, starts + 1, owed, edge)
          .. string.sub(value, 49), "KEEPTTL")
        redis.call("SET", ${memoKey}, struct.pack("<I4ddddd", ${SHORT_MEMO}, memoEdge, sequence, now, units, last), "KEEPTTL")
        ${done}
      end
    end
  end
end
`;
}

/** The short way, in front of the whole of a take. It runs before anything else is defined, and answers with a string: a table costs more. */
export const SHORT_TAKE_LUA = `
local spec = ARGV[2]
${shortTake({
  key: "KEYS[1]",
  memoKey: "KEYS[2]",
  number: "ARGV[1]",
  done: 'return clock[1] .. " " .. clock[2] .. " " .. units .. " " .. since',
})}`;

/**
 * Several takes with the same words, in Lua, each the short way: at its own key, for its own asker. One that cannot go that way is not carried out, and
 * gets `false` instead of its string.
 *
 * Each is a microsecond later than the one before it, which it really is: reading and writing takes longer.
 */
export const TAKES_LUA = `
local spec, replies = ARGV[1], {}
for number = 1, #KEYS / 2 do
  replies[number] = false
  local key, memoKey = KEYS[2 * number - 1], KEYS[2 * number]
  ${shortTake({
    key: "key",
    memoKey: "memoKey",
    number: "ARGV[number + 1]",
    done: 'replies[number] = clock[1] .. " " .. (clock[2] + number - 1) .. " " .. units .. " " .. since',
  })}
  now = now + 1
end
return replies
`;

/** A key of an operation, in Lua: `TakeKey`. */
export const KEYS_LUA = String.raw`
-- A key of an operation, from the words of the process. Its numbers begin at "from".
function F.keyOf(numbers, words, from)
  from = from or 1
  return {
    rate = numbers[from], window = numbers[from + 1], quota = numbers[from + 2], slow = numbers[from + 3],
    index = numbers[from + 4], from = numbers[from + 5], till = numbers[from + 6],
    words = words, id = sub(words, string.find(words, "\n", 1, true) + 1),
  }
end
`;

/** The whole of a take, in Lua: `shared/take.ts`. The reply is flat: see `readTake` in `takeWire.ts`. */
export const TAKE_LUA = String.raw`
local sequence, numbers, words = ARGV[1] + 0, F.numbersOf(ARGV[2])
local keyCount, count = numbers[1], numbers[2]
local hasMore, lease, maxHold = numbers[3] == 1, numbers[5], numbers[6]
local horizon, turn, joined, asker, ticket, member = string.match(ARGV[3], "^(%S+) (%S+) (%S+) ([^\n]*)\n([^\n]*)\n(.*)$")
turn, joined = turn + 0, joined + 0
local states, time = F.begin(keyCount, sequence)
if not states then return time end
local keys, limit = { F.keyOf(numbers, words, 7) }, time + horizon
for index = 2, keyCount do keys[index] = F.keyOf(F.numbersOf(ARGV[index + 2])) end
for index = 1, keyCount do
  local key = keys[index]
  if key.till > 0 and (time < key.from or time >= key.till) then
    F.writeAll(states)
    return { time, 2, -1, 0, 0 }
  end
  -- What starts in another period of the calendar has to be counted in that one.
  if key.till > 0 then limit = min(limit, key.till - 1) end
end

-- Brings a key up to date: what has lapsed is over, and the asker's own place in line is open again.
local function prepare(state, key)
  F.endLapsedPlaces(state, time)
  local cooldown = state.cooldown
  if cooldown and time >= cooldown.till + ${INCIDENT_MEMORY} then state.cooldown, state.probe = nil, "" end
  local own = F.ownTrack(state, key, time)
  own.used = max(own.used, time + lease)
  F.dropOldTracks(state, own, time)
  state.slow = max(state.slow, key.slow)
  if #state.line > 0 then
    state.line = F.keepWhere(state.line, function(other) return other[1] ~= ticket and other[2] + ${MISSED} > time end)
  end
  if member == "" then return end
  state.members = F.keepWhere(state.members, function(other)
    return other[1] ~= member and other[2] + ${MEMBER_MEMORY} > time
  end)
  if #state.members < ${MEMBERS_MOST} then state.members[#state.members + 1] = { member, time } end
end

${LINE_LUA}
local function isWithin(obstacle)
  return not obstacle or (not obstacle.isEvent and obstacle.again <= limit)
end

-- Whether the next start, before which there is this obstacle, is this asker's to take.
local function mayStart(obstacle, taken)
  if not isWithin(obstacle) then return false end
  if not hasLine() or (taken == 0 and not obstacle and isUnclaimed()) then return true end
  local isTurn = turn > 0 and turn <= limit
  return isWithin(F.obstacleOf(states, keys, time, isTurn and claimsIn or aheadIn))
end

-- A start at a key that has a cooldown is the probe, or proof that nobody waits for one any more.
local function sendProbe(state, cooldown, place, started)
  if cooldown.probe == "out" then
    cooldown.probe, state.probe = "done", ""
  elseif cooldown.probe == "due" then
    cooldown.probe, cooldown.probeAt, state.probe = "out", started, place
  end
end

-- Takes one start from every key, and says so in the reply.
local function start(started, place, reply)
  local first, at = states[1], #reply
  first.token = max(first.token + 1, time)
  reply[at + 1], reply[at + 2] = started, first.token
  for index = 1, keyCount do
    local state, key = states[index], keys[index]
    state.units, state.starts = state.units + key.rate, state.starts + 1
    reply[at + 1 + 2 * index], reply[at + 2 + 2 * index] = state.units, state.last
    F.countStart(state, key, started, time)
    state.last = max(state.last, started)
    local isFollowed = false
    for at = 1, #state.tracks do
      local track = state.tracks[at]
      if (track.concurrency > 0 or track.fromAnswer) and track.used > time then isFollowed = true end
    end
    if isFollowed then
      state.places[#state.places + 1] = { place, started + lease, started + maxHold, key.window }
    else
      -- Nobody will tell a policy that is not in use when it was answered: it counts from itself.
      for at = 1, #state.tracks do
        if state.tracks[at].fromAnswer then F.logUnits(state.tracks[at], started, key.window) end
      end
    end
    if state.cooldown then sendProbe(state, state.cooldown, place, started) end
  end
end

-- Whether all keys are to be kept for somebody who has waited for so long: it is the first at each, and waits for what others give back.
local function mayKeep(next, behind, waited)
  if not next or not behind or waited <= ${AGEING} then return false end
  return next.isEvent and not (next.kind == ${QUOTA} or next.kind >= ${COOLDOWN}) and next.ready <= time + ${POLL_MOST}
    and next.again == behind.again
end

-- Finds out when to come back, and remembers that somebody will.
local function standInLine(next, reply)
  local since = waitsSince()
  local behind = next
  if hasLine() then behind = F.obstacleOf(states, keys, time, aheadIn) end
  local at = behind and behind.lineKey or 1
  local isFirm = mayKeep(next, behind, keyCount > 1 and time - since or 0)
  local turnAt = min(${ALWAYS}, behind and behind.again or time)
  if isFirm then turnAt = min(turnAt, time + ${STANDBY}) end
  for index = 1, keyCount do
    -- Others save up with whoever wants much: it says within one lease that it is still there.
    if keys[index].rate > 1 or keys[index].window > 1 then turnAt = min(turnAt, time + max(lease, ${STANDBY})) end
  end
  if ticket ~= "" then
    -- Who has not come by then is gone. Keys are kept for whoever asks as often as a slow store lets it.
    local againAt = isFirm and time + ${STANDBY} or min(turnAt, time + ${ASK_AGAIN})
    -- Who came late will be as late again.
    local comesAt = againAt + ((isFirm or turn == 0) and 0 or max(0, min(${MISSED}, time - turn)))
    for index = 1, keyCount do
      local line, key, own = states[index].line, keys[index], keys[index].own
      local stands = isFirm and 1 or index == at and 0 or (key.rate > 1 or key.window > 1) and 2
      if stands and #line < ${LINE_MOST} then
        local isUsual = key.rate == 1 and key.window == 1 and key.quota == 1 and stands == 0
        line[#line + 1] = isUsual and { ticket, comesAt, since }
          or { ticket, comesAt, since, key.rate, key.window, key.quota, stands }
      end
      -- Whoever waits has not gone: its policy counts until it asks again.
      own.used = max(own.used, againAt + lease)
    end
  end
  local from = #reply
  reply[from + 1] = (next and next.key or at) - 1
  reply[from + 2] = next and next.kind or ${STOP_KINDS.indexOf("queue")}
  reply[from + 3] = next and next.ready or time
  reply[from + 4] = turnAt
  reply[from + 5] = next and F.whyOf(next.kind, next.because) or ""
end

-- Whether the state fits into the short form after this operation.
local function isShort(state, key, track)
  return memoKey and keyCount == 1 and count == 1 and not hasMore and member == "" and #state.tracks == 1
    and key.rate == 1 and key.slow == 0 and state.held == 0 and key.till == 0 and not state.cooldown and not state.headroom and state.probe == ""
    and state.paused == ${NEVER} and #state.places == 0 and #state.line == 0 and track.count > 0 and #track.windows == 0
    and track.quota == 0 and track.concurrency == 0 and not track.fromAnswer and time == now and state.last == time
    and state.token == time and track.owedAt == time and track.used == time + lease and state.answered <= time
end

local function writeShort(state, track, spec)
  local least = ${MINUTE} + max(${MINUTE}, lease, state.slow, track.gap)
  local keep = now + F.keepFor(state)
  local text = struct.pack("<I4I4dddddddddddddd", ${SHORT_STATE}, #spec, state.last, state.units, state.starts, track.owed,
    F.edgeFor(state.edge, keep), least, track.gap, track.count, track.per, track.burst,
    state.answered, state.throttled, state.slow, track.since)
  local members = #state.members > 0 and cmsgpack.pack(state.members) or ""
  F.put(KEYS[1], text .. spec .. members, state.edge, keep)
end

-- Whether nothing but a rate can stop a start, and nobody else is in line.
local function isRateOnly(state, key, track)
  return keyCount == 1 and #state.tracks == 1 and track.count > 0 and track.gap == 0 and #track.windows == 0
    and track.quota == 0 and track.concurrency == 0 and not track.fromAnswer and key.slow == 0 and not state.cooldown
    and not state.headroom and state.paused <= time and #state.line == 0
end

-- Takes as many starts of such a key as there are, without looking at everything again for each, and replies how many are at each instant.
local function takeRun(state, key, track, reply)
  local owed, owedAt, units, room = track.owed, track.owedAt, key.rate * track.per, (track.burst - key.rate) * track.per
  local taken, last, size = 0, ${NEVER}, 10
  while taken < count do
    local at = max(time, owedAt)
    if at > owedAt then owed = max(0, owed - (at - owedAt) * track.count) end
    owedAt = at
    if owed > room then at = at + ceil((owed - room) / track.count) end
    if at > limit then break end
    owed = min(${ALWAYS}, max(0, owed - (at - owedAt) * track.count) + units)
    owedAt, taken = at, taken + 1
    if at ~= last then
      reply[size + 1], reply[size + 2], last, size = at, 0, at, size + 2
    end
    reply[size] = reply[size] + 1
  end
  if taken == 0 then return 0 end
  track.owed, track.owedAt = owed, owedAt
  reply[6], reply[7], reply[8], reply[9], reply[10] =
    max(state.token + 1, time), state.units + key.rate, key.rate, state.last, (size - 10) / 2
  state.token = reply[6] + taken - 1
  state.units, state.starts, state.last = state.units + taken * key.rate, state.starts + taken, max(state.last, last)
  return taken
end

for index = 1, keyCount do prepare(states[index], keys[index]) end
local reply, taken, isRun = { time, 0, -1, 0, 0 }, 0, count > 1 and isRateOnly(states[1], keys[1], keys[1].own)
if isRun then
  taken = takeRun(states[1], keys[1], keys[1].own, reply)
  if taken > 0 then turn, joined = 0, 0 end
end
local obstacle
if not isRun or taken < count or hasMore then obstacle = F.obstacleOf(states, keys, time) end
while not isRun and taken < count and mayStart(obstacle, taken) do
  start(obstacle and obstacle.again or time, asker .. "#" .. ARGV[1] .. "#" .. taken, reply)
  taken = taken + 1
  -- It had its turn: for more it goes to the end of the line.
  turn, joined = 0, 0
  if taken < count or hasMore then obstacle = F.obstacleOf(states, keys, time) end
end
reply[5] = isRun and -taken or taken
if taken < count or hasMore then standInLine(obstacle, reply) end
for index = keyCount, 1, -1 do
  if states[index].cooldown then reply[2] = 1 end
  for at = 1, #states[index].tracks do
    local track = states[index].tracks[at]
    if track ~= keys[index].own and track.used > time then reply[3] = index - 1 end
  end
  if member ~= "" then reply[4] = max(reply[4], #states[index].members) end
end
if taken == 0 then
  F.writeAll(states)
  return reply
end
if not isShort(states[1], keys[1], keys[1].own) then return F.finish(states, time, sequence, reply) end
states[1].memo = time
writeShort(states[1], keys[1].own, ARGV[2])
F.remember(sequence, "h", struct.pack("<ddd", time, states[1].units, reply[9]))
return reply
`;
