const MOST = Number.MAX_SAFE_INTEGER;

/** Learns from an answer at one key, in Lua: `hear` of `decide.ts`, `core/incident.ts` and `core/headroom.ts`. */
export const HEAR_LUA = `
local function ladderFor(key, isThrottle, step)
  local backoff, cooldown = key.backoff, key.cooldownUs
  if isThrottle then return cooldown[min(step, #cooldown)] end
  if backoff.kind == "none" then return 0 end
  local steady = min(backoff.maxUs, backoff.baseUs * (backoff.kind == "linear" and step or 2 ^ min(step - 1, 60)))
  return steady + ceil(steady * backoff.jitter * op.random)
end
local function afterBad(before, key, answer, started)
  local isThrottle, retryAfter = answer.kind == "rate_limited", answer.retryAfterUs
  if retryAfter == 0 and not isThrottle and key.backoff.kind == "none" then return before end
  local step, raised = isThrottle and "throttleStep" or "errorStep", isThrottle and "throttleRaised" or "errorRaised"
  local known = before and not F.isForgotten(before) and before or { throttleStep = 0, errorStep = 0 }
  local same = before and started <= before.began and before or { began = now }
  local after = {
    began = same.began, throttleStep = known.throttleStep, errorStep = known.errorStep, throttleRaised = same.throttleRaised,
    errorRaised = same.errorRaised, probeAt = 0,
  }
  if not same[raised] then after[step] = known[step] + 1 end
  after[raised] = true
  -- A success may have reset the step in the middle of the incident; a late bad answer holds for the first one all the same.
  local hold = retryAfter > 0 and retryAfter or ladderFor(key, isThrottle, max(1, after[step]))
  after.till = max(before and before.till or -huge, now + hold)
  after.probe = after.till > now and "due" or "done"
  after.because = before and before.till == after.till and before.because or answer.because
  return after
end
local function headroomAfter(known, budget, started, later)
  local isLate = known and known.till > now and started < known.started
  local left, till = budget.remaining - (isLate and 0 or later), now + budget.resetUs
  local gap, hold = left > 0 and ceil(budget.resetUs / left) or 0, left > 0 and -huge or till
  if isLate and gap <= known.gap and hold <= known.hold then return known end
  local other = isLate and known or { gap = gap, hold = hold, till = till, started = started }
  return {
    gap = max(gap, other.gap), hold = max(hold, other.hold), till = max(till, other.till), started = other.started, because = budget.because,
  }
end
-- "who" is the place that the start has, if it was not recorded.
local function hear(index, who, started, later)
  local key, rest, answer = op.keys[index], states[index].rest, op.answer
  local isMeant, kind, budget = key.isMeant or op.meant == index - 1, answer.kind, answer.budget
  local isBad, before, probe, isNew = kind == "rate_limited" or kind == "server_error" or kind == "timeout", rest.incident, rest.probe, false
  if isMeant and kind == "rate_limited" then states[index].throttled = states[index].throttled + 1 end
  if isMeant and budget then rest.headers = headroomAfter(rest.headers, budget, started, later) end
  if isMeant and not key.rule.off and isBad then
    rest.incident = afterBad(before, key, answer, started)
    isNew = rest.incident ~= before
  elseif before and kind == "success" and started > before.began then
    isNew, before.throttleStep, before.errorStep = true, 0, 0
    if now >= before.till then before.probe = "done" end
  end
  local isProbe = not isNew and before and who and probe == who
  if isProbe then before.probe = kind == "unused" and "due" or "done" end
  if isNew or isProbe then rest.probe = nil end
  local isHit = isBad and (isNew or isProbe)
  if probe and not rest.probe and not isHit then F.firstInLine(states[index]) end
  if not isHit or not rest.incident then return end
  local step = kind == "rate_limited" and rest.incident.throttleStep or rest.incident.errorStep
  holds[#holds + 1] = { index - 1, rest.incident.till - now, max(1, step), rest.incident.because }
end
`;

/** Takes starts back and hears their answers, in Lua: `settle` of `decide.ts`, and `giveBack` of `core/decide.ts`. */
export const SETTLE_LUA = `
-- Units taken after a start; more than any when a reset lies between.
local function unitsSince(state, after, started)
  local cut = state.rest.cut
  local isCut = cut and (started < cut.at or (started == cut.at and (cut.units - after) % ${2 ** 32} < ${2 ** 31}))
  return isCut and huge or (state.units - after) % ${2 ** 32}
end
-- Lets the newest start be as if it had never been. One that is not the newest goes with it, as long as those returned follow one another.
local function takeOut(state, key, later, latest)
  local from, to, before = (key.unitsAfter - key.cost.rate) % ${2 ** 32}, key.unitsAfter, state.rest.returned
  local run = { previous = key.previousUs ~= cjson.null and min(key.previousUs, latest) or -huge, from = from, to = to }
  local isNext = before and before.to == from
  if isNext then run = { previous = before.previous, from = before.from, to = to }
  elseif before and before.from == to then run.to = before.to end
  if later > 0 then
    state.rest.returned = run
    return
  end
  state.last, state.units = run.previous, run.from
  if isNext then state.rest.returned = nil end
end
local function giveBack(state, key, place, later, started, latest)
  local unused, bucket, quota = key.unused, F.bucketOf(state, key.rule), state.rest.quota
  local run = state.rest.returned or { from = 0, to = 0 }
  if bucket and unused.rate ~= 0 then
    local returned = (run.from - key.unitsAfter) % ${2 ** 32} < later and (run.to - run.from) % ${2 ** 32} or 0
    local owed = F.owedAt(bucket.count, state.owed, state.seen, now)
    local least = unused.rate > 0 and min(owed, (later - returned) * bucket.per) or 0
    state.owed, state.seen = min(${MOST}, max(owed - unused.rate * bucket.per, least, 0)), max(state.seen, now)
  end
  if unused.rate < 0 then state.units = (state.units - unused.rate) % ${2 ** 32} end
  if later == huge then return end
  if op.answer.kind == "unused" then takeOut(state, key, later, latest) end
  if not place or place.pendingUnits == 0 then
    for _, log in ipairs(unused.window ~= 0 and state.logs or {}) do
      local left, gone = unused.window, 1
      -- Where starts lie after their instants, another one's units may lie in front: then those behind them are its own.
      while left ~= 0 and gone ~= 0 do
        gone = F.add(log, started, -left, log.blur)
        left = left - gone
      end
    end
  end
  if quota and quota.period == key.period then quota.used = max(0, quota.used - unused.quota) end
end
-- How long places are likely to be held, after one more: it falls fast and rises slowly.
local function heldAfter(known, lasted)
  if known == 0 then return max(1, min(lasted, 1000000)) end
  if lasted < known then return max(1, lasted < known / 2 and lasted or ceil((known + lasted) / 2)) end
  return known + ceil(min(lasted - known, known) / 2)
end
function F.settle()
  -- Instants from before the clock was set back are not to hold anything until it has come there again.
  local isUnused, latest = op.answer.kind == "unused", now + 1000000
  local started = min(op.startedUs, latest)
  local answered = max(now, started)
  holds = {}
  for index, state in ipairs(states) do
    local key, unused = op.keys[index], op.keys[index].unused
    local place, later = F.firstPlace(state) and F.placeOf(state, op.place), unitsSince(state, key.unitsAfter, started)
    if unused then giveBack(state, key, place, later, started, latest) end
    if isUnused then state.starts = max(0, state.starts - 1) end
    if op.isOver and place then
      if not isUnused then state.held = heldAfter(state.held, answered - started) end
      F.free(state, key.rule, place, answered, not isUnused and key.cost.window - (unused and unused.window or 0) or nil)
      F.firstInLine(state)
    end
    hear(index, op.place, min(op.grantedUs, started), later < huge and later or 0)
  end
  return { wake, holds }
end
`;

/** Tells what happened without asking, and what a process still has, in Lua: `recordStarts` and `renew` of `decide.ts`. */
export const TELL_LUA = `
function F.forget(state)
  local rest = state.rest
  state.owed, state.count, state.logs, rest.answered, rest.returned = 0, 0, nil, nil, nil
  rest.cut = { at = now, units = state.units }
  if op.reset == "all" then rest.quota, rest.incident, rest.probe, rest.headers, rest.paused = nil, nil, nil, nil, nil end
end
local function record(state, rule, rate, window, quota, at)
  F.count(state, rule, { rate = rate, window = window, quota = quota }, at)
  if rule.fromAnswer then F.countAnswer(state, rule, window, now) end
end
function F.record()
  local ages, pause = op.agesUs, op.pauseUs
  local latest = now - (ages[#ages] or 0)
  holds = {}
  for index, state in ipairs(states) do
    local rule, cost, debt = op.keys[index].rule, op.keys[index].cost, op.owed and op.owed[index] or 0
    for which, age in ipairs(ages) do
      local count, spent = op.counts[which], op.units and op.units[which]
      local rate = op.owed and 0 or spent or cost.rate * count
      record(state, rule, rate, spent or cost.window * count, spent or cost.quota * count, now - age)
      state.starts = state.starts + count
    end
    if debt > 0 then record(state, rule, debt, 0, 0, latest) end
    if op.answer then hear(index, nil, latest, 0) end
    if pause then state.rest.paused = pause ~= 0 and (pause == cjson.null and huge or now + pause) or nil end
    if pause == 0 or op.reset then F.firstInLine(state) end
  end
  return { wake, holds }
end
function F.renew(members)
  for index, state in ipairs(states) do
    local key, named = op.keys[index], {}
    if op.isLeaving then state.members, state.sight = state.members - call("ZREM", F.part(state, "m"), op.process), nil end
    for _, asker in ipairs(op.gone) do
      if F.leave(state, asker) < huge then F.firstInLine(state) end
    end
    for _, place in ipairs(key.places) do named[place.id] = place end
    for _, place in ipairs(F.placesOf(state)) do
      local renewed, number = named[place.id], tonumber(string.match(place.id, "#([^#]*)") or "")
      named[place.id] = nil
      if renewed then
        place.aliveUs = now + renewed.ttlUs
        F.putPlace(state, place)
      elseif F.processOf(place.id) == op.process and (op.isLeaving or not (number and number >= op.completeBefore)) then
        F.free(state, key.rule, place, now, place.pendingUnits)
        F.firstInLine(state)
      end
    end
    -- Those that the store has forgotten.
    for _, place in ipairs(key.places) do
      place.aliveUs = now + place.ttlUs
      if named[place.id] and place.startedUs + place.maxHoldUs > now then F.takePlace(state, place) end
    end
    F.lapse(state, key.rule)
    members = index == 1 and state.members or max(members, state.members)
  end
  return { wake, members }
end
`;

/**
 * Takes, renews, gives back or looks at a lease, in Lua: `decideLease`. It says whether the asker holds it, its token, the time left, and who holds it.
 *
 * The value begins with `PL`, a version and `l`; then in MessagePack until when it is held, its length, its token, holder and label.
 */
export const LEASE_LUA = String.raw`
local function parse(text)
  local till, length, token, owner, label = cmsgpack.unpack(sub(text, 5))
  return #label >= 0 and { till, length, token, owner, label }
end
function F.lease(name)
  local act, ttl, till, length, token, owner, label = op.act, op.ttlUs, unpack(F.read(name, "l", parse) or { 0, 0, 0, "", "" })
  -- The next token is larger: one more while this one is known, and the time once that is past it.
  local function write(kept)
    local text = "PL\2l" .. cmsgpack.pack(till, length, token, owner, label)
    call("SET", name, text, "PX", ceil((max(kept, token - wall) + 3600000000) / 1000))
  end
  -- A clock that was set back must not make a lease longer than it ever was.
  local isMoved = till - wall > length
  till = min(till, wall + length)
  local isLive = till > wall
  local isOwn = isLive and owner == op.holder
  if act == "look" or not isOwn and (act ~= "take" or isLive) then
    if isMoved and act ~= "look" then write(length) end
    if not isLive then return { 0, 0, 0, "" } end
    return { isOwn and 1 or 0, token, till - wall, label }
  end
  if act == "release" then
    till = 0
    write(0)
    return { 0, 0, 0, "" }
  end
  token = isOwn and token or max(token + 1, wall)
  till, length, owner, label = wall + ttl, ttl, op.holder, op.label
  write(ttl)
  return { 1, token, ttl, label }
end
`;
