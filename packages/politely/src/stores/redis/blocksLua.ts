import { ALWAYS, FEW_IN_LINE, NEVER, POLL_LEAST, POLL_MOST, PROBE_PATIENCE, STANDBY } from "./constants.js";

/** The names of what stops a start. Scripts say their places in this list. */
export const STOP_KINDS = [
  "minDelay",
  "rate",
  "window",
  "quota",
  "concurrency",
  "cooldown",
  "probe",
  "headers",
  "pause",
  "queue",
] as const;

const [MIN_DELAY, RATE, WINDOW, QUOTA, CONCURRENCY, COOLDOWN, PROBE, HEADERS, PAUSE] = STOP_KINDS.keys();

/** What lets a start wait, in Lua: `shared/ready.ts`, and `obstacleOf` of `shared/take.ts`. */
export const BLOCKS_LUA = `
-- Why: what was answered, or the numbers of a limit, given its track or window: "limitNumbers" of shared/ruleNumbers.ts.
function F.whyOf(kind, of)
  if type(of) == "string" then return of end
  if kind == ${MIN_DELAY} then return string.format("%.0f", of.gap) end
  if kind == ${RATE} then return string.format("%.0f/%.0f/%.0f", of.count, of.per, of.burst) end
  if kind == ${WINDOW} then return string.format("%.0f/%.0f", of.count, of.per) end
  if kind == ${QUOTA} then return string.format("%.0f %s", of.quota, of.calendar) end
  return string.format("%.0f", of.concurrency)
end

-- Hears of something that does not allow a start before "at". What ends last counts; of two, the first.
-- "pace" is set where an event may end it sooner or put it off: the time expected between two starts, or 0.
function F.tell(found, kind, at, pace, because)
  if found.most and at > found.most then at = found.most end
  if at <= found.time then return end
  local ready, again = at, at
  if pace then
    ready = min(at, found.time + found.poll)
    again = min(at, max(found.time + found.poll, found.last + pace))
    local spare = pace > 0 and found.poll - ${POLL_LEAST} or found.poll
    local step, ahead = max(pace, min(${STANDBY}, 2 * spare)), found.ahead
    if pace <= ${STANDBY} or ahead == 0 then again = again + ahead * step
    else again = again + ${POLL_MOST} + (ahead - 1) * step end
    if found.others < ${FEW_IN_LINE} then again = min(again, found.time + (found.others + 1) * ${STANDBY}) end
    found.isEvent = true
  end
  if at > found.at then found.at, found.kind, found.because, found.key = at, kind, because, found.index end
  if again > found.again then found.again, found.lineKey = again, found.index end
  if ready > found.ready then found.ready = ready end
  local list = found.list
  if list then
    local place = #list + 1
    while place > 1 and list[place - 1][2] < at do place = place - 1 end
    table.insert(list, place, { kind, at, F.whyOf(kind, because) })
  end
end

-- How long after its start a request is likely to be answered: as others were lately, and a little later.
function F.answerAfter(state)
  return state.held + min(${POLL_MOST}, ceil(state.held / 16))
end

-- When a gap allows a start to somebody with so many in front, of whom the first may start now at the earliest.
function F.afterGap(last, gap, time, ahead)
  return (last == ${NEVER} and time or max(time, last + gap)) + ahead * gap
end

-- When the first place is free again if nobody gives one back.
function F.firstFree(places)
  local free = ${ALWAYS}
  for index = 1, #places do free = min(free, places[index][2], places[index][3]) end
  return free
end

-- When a gap allows a start to somebody with so many in front. Where it runs from the answer and one is due, when that place ends by itself.
function F.spacedAt(state, gap, fromAnswer, time, ahead)
  if not fromAnswer then return F.afterGap(state.last, gap, time, ahead) end
  if #state.places > 0 then return F.firstFree(state.places) + gap * (1 + ahead) end
  return F.afterGap(max(state.last, state.answered), gap, time, ahead)
end

-- When a hold is over for somebody with others in front, who go first at the pace of the key.
function F.afterHold(till, state, key, found)
  local ahead = found.ahead
  if ahead == 0 or till <= found.time then return till end
  local spread = ahead * key.slow
  for _, track in ipairs(state.tracks) do
    if track == key.own or track.used > found.time then
      spread = max(spread, ahead * track.gap)
      if track.count > 0 then
        spread = max(spread, ceil(((found.aheadRate + key.rate - track.burst) * track.per) / track.count))
      end
      for _, window in ipairs(track.windows) do
        spread = max(spread, math.floor((found.aheadWindow + key.window - 1) / window.count) * window.per)
      end
    end
  end
  return till + spread
end

-- When a bucket has room for so many units. From now on: one that was idle has saved up no more than its burst for those ahead.
function F.bucketAt(track, units, time)
  local from = max(time, track.owedAt)
  local short = F.debtAt(track, from) - (track.burst - units) * track.per
  return short > 0 and from + ceil(short / track.count) or from
end

-- When a window has room for so many units, or nothing when only an answer can make room; and how often it has to be filled before.
function F.windowAt(state, track, window, units, time)
  local rounds = units > window.count and ceil(units / window.count) - 1 or 0
  local pending = track.fromAnswer and F.unitsInFlight(state) or 0
  local at = F.windowReadyAt(window, time, units - rounds * window.count, pending)
  return at and at + rounds * window.per, rounds
end

-- Whether so much has come together by an instant that these units fit: "savedUpAt" of shared/ready.ts.
function F.isSavedUp(state, own, rate, units, time, by)
  for index = 1, #state.tracks do
    local track = state.tracks[index]
    if track == own or track.used > time then
      if track.count > 0 and F.bucketAt(track, rate, time) > by then return false end
      for number = 1, #track.windows do
        local at = F.windowAt(state, track, track.windows[number], units, time)
        if not at or at > by then return false end
      end
    end
  end
  return true
end

function F.trackBlocks(found, state, track, key)
  local places, time, ahead, fromAnswer = state.places, found.time, found.ahead, track.fromAnswer
  local free = #places > 0 and F.firstFree(places) or time
  local answer = F.answerAfter(state)
  if track.gap > 0 then
    local pace = fromAnswer and #places > 0 and answer + track.gap or nil
    F.tell(found, ${MIN_DELAY}, F.spacedAt(state, track.gap, fromAnswer, time, ahead), pace, track)
  end
  if track.count > 0 then
    local at = F.bucketAt(track, key.rate + found.aheadRate, time)
    if at > time then F.tell(found, ${RATE}, at, nil, track) end
  end
  for index = 1, #track.windows do
    local window = track.windows[index]
    local at, rounds = F.windowAt(state, track, window, key.window + found.aheadWindow, time)
    if at then F.tell(found, ${WINDOW}, at, nil, window)
    else F.tell(found, ${WINDOW}, free + window.per * (1 + rounds), ceil((answer + window.per) / window.count), window) end
  end
  if track.quota > 0 then
    F.turnPage(track, key, time)
    if track.quotaUsed + key.quota + found.aheadQuota > track.quota then
      F.tell(found, ${QUOTA}, F.afterHold(track.quotaUntil, state, key, found), nil, track)
    end
  end
  if track.concurrency > 0 and #places + ahead >= track.concurrency then
    F.tell(found, ${CONCURRENCY}, max(free, time + 1), ceil(answer / track.concurrency), track)
  end
end

-- Tells everything that does not allow a start at a key at once.
function F.eachBlock(found, state, key)
  local time, ahead, cooldown, headroom = found.time, found.ahead, state.cooldown, state.headroom
  local fromAnswer = key.own.fromAnswer
  local answer = fromAnswer and #state.places > 0 and F.answerAfter(state) or nil
  found.others, found.last, found.poll = #state.line, state.last, max(${POLL_LEAST}, min(${POLL_MOST}, ceil((time - state.last) / 8)))
  if state.paused > time then F.tell(found, ${PAUSE}, state.paused, 0, string.format("%.0f", state.paused)) end
  if cooldown then
    if cooldown.probe == "out" then
      local patience = cooldown.probeAt + max(${PROBE_PATIENCE}, key.own.gap)
      F.tell(found, ${PROBE}, max(cooldown.till, patience), 0, cooldown.because)
    else
      F.tell(found, ${COOLDOWN}, F.afterHold(cooldown.till, state, key, found), nil, cooldown.because)
    end
  end
  if headroom and headroom.till > time then
    local spaced = headroom.gap > 0 and F.spacedAt(state, headroom.gap, fromAnswer, time, ahead) or time
    local ends = F.afterHold(headroom.till, state, key, found)
    F.tell(found, ${HEADERS}, min(ends, max(headroom.hold, spaced)), answer and answer + headroom.gap, headroom.because)
  end
  if key.slow > 0 then
    F.tell(found, ${MIN_DELAY}, F.spacedAt(state, key.slow, fromAnswer, time, ahead), answer and answer + key.slow, "")
  end
  for index = 1, #state.tracks do
    local track = state.tracks[index]
    -- Another policy stops nobody for longer than it lives.
    found.most = track ~= key.own and track.used or nil
    if track == key.own or track.used > time then F.trackBlocks(found, state, track, key) end
  end
  found.most = nil
end

-- Nothing that stops a start yet, with nobody in front: how many starts go first, and what these take together.
function F.nothingFound(time)
  return {
    time = time, at = time, ready = time, again = time, isEvent = false,
    ahead = 0, aheadRate = 0, aheadWindow = 0, aheadQuota = 0,
  }
end

-- What lets a start wait longest over all keys, when others go first at each; nothing when nothing does.
function F.obstacleOf(states, keys, time, aheadOf)
  local found = F.nothingFound(time)
  for index = 1, #states do
    found.index = index
    if aheadOf then
      found.ahead, found.aheadRate, found.aheadWindow, found.aheadQuota = aheadOf(states[index], keys[index])
    end
    F.eachBlock(found, states[index], keys[index])
  end
  return found.at > time and found or nil
end
`;
