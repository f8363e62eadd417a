/** Learns from an answer at one key, in Lua: `hear` of `decide.ts`, `core/incident.ts` and `core/headroom.ts`. */
export const HEAR_LUA = `
local holds, wake = {}, {}
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
  if not isLate then return { gap = gap, hold = hold, till = till, started = started, because = budget.because } end
  if gap <= known.gap and hold <= known.hold then return known end
  return {
    gap = max(gap, known.gap), hold = max(hold, known.hold), till = max(till, known.till), started = known.started,
    because = budget.because,
  }
end
-- "who" is the place that the start has, if it was not recorded.
local function hear(state, index, key, who, started, later)
  local answer, rest, isMeant = op.answer, state.rest, key.isMeant or op.meant == index - 1
  local kind, budget = answer.kind, answer.budget
  local isBad = kind == "rate_limited" or kind == "server_error" or kind == "timeout"
  if isMeant and kind == "rate_limited" then state.throttled = state.throttled + 1 end
  local known = rest.holds or {}
  local before, incident, probe = known.incident, known.incident, known.probe
  if not (isMeant and (isBad or budget)) and not before then return end
  rest.holds = known
  if isMeant and budget then known.headers = headroomAfter(known.headers, budget, started, later) end
  local isNew = false
  if isMeant and not key.rule.off and isBad then
    incident = afterBad(before, key, answer, started)
    isNew = incident ~= before
  elseif before and kind == "success" and started > before.began then
    isNew, before.throttleStep, before.errorStep = true, 0, 0
    if now >= before.till then before.probe = "done" end
  end
  known.incident = incident
  local isHit = isNew and isBad
  if isNew then known.probe = nil
  elseif before and who and probe == who then
    before.probe, known.probe = kind == "unused" and "due" or "done", nil
    isHit = isBad
  end
  if probe and not known.probe and not isHit then F.firstInLine(state, wake) end
  if not isHit or not incident then return end
  local step = kind == "rate_limited" and incident.throttleStep or incident.errorStep
  holds[#holds + 1] = { index - 1, incident.till - now, max(1, step), incident.because }
end
`;

/** Takes starts back and hears their answers, in Lua: `settle` of `decide.ts`, and `giveBack` of `core/decide.ts`. */
export const SETTLE_LUA = `
F.open()
-- Instants from before the clock was set back are not to hold anything until it has come there again.
local isUnused, latest = op.answer.kind == "unused", now + 1000000
local started = min(op.startedUs, latest)
-- Units taken after that start; more than any when a reset lies between.
local function unitsSince(state, after)
  local cut = state.rest.cut
  local isCut = cut and (started < cut.at or (started == cut.at and (cut.units - after) % ${2 ** 32} < ${2 ** 31}))
  return isCut and huge or (state.units - after) % ${2 ** 32}
end
-- Lets the newest start be as if it had never been. One that is not the newest goes with it, as long as those returned follow one another.
local function takeOut(state, key, later)
  local fromUnits, before = (key.unitsAfter - key.cost.rate) % ${2 ** 32}, state.rest.returned
  local run = { previous = key.previousUs ~= cjson.null and min(key.previousUs, latest) or -huge, from = fromUnits, to = key.unitsAfter }
  local isNext = before and before.to == fromUnits
  if isNext then run = { previous = before.previous, from = before.from, to = key.unitsAfter }
  elseif before and before.from == key.unitsAfter then run.to = before.to end
  if later > 0 then
    state.rest.returned = run
    return
  end
  state.last, state.units = run.previous, run.from
  if isNext then state.rest.returned = nil end
end
local function giveBack(state, key, place, later)
  local rest, unused, bucket = state.rest, key.unused, F.bucketOf(state, key.rule)
  local run = rest.returned or { from = 0, to = 0 }
  if bucket and unused.rate ~= 0 then
    local returned = (run.from - key.unitsAfter) % ${2 ** 32} < later and (run.to - run.from) % ${2 ** 32} or 0
    local owed = F.owedAt(bucket.count, state.owed, state.seen, now)
    local least = unused.rate > 0 and min(owed, (later - returned) * bucket.per) or 0
    state.owed = min(${Number.MAX_SAFE_INTEGER}, max(owed - unused.rate * bucket.per, least, 0))
    state.seen = max(state.seen, now)
  end
  if unused.rate < 0 then state.units = (state.units - unused.rate) % ${2 ** 32} end
  if later == huge then return end
  if isUnused then takeOut(state, key, later) end
  if (not place or place.pendingUnits == 0) and unused.window ~= 0 then F.unlog(state, started, unused.window) end
  local quota = rest.quota
  if quota and quota.period == key.period then quota.used = max(0, quota.used - unused.quota) end
end
local function settle()
  for index, state in ipairs(states) do
    local key = op.keys[index]
    local rule = key.rule
    F.prepare(state, rule)
    F.see(state, F.processOf(op.place))
    local place = F.firstPlace(state) and F.placeOf(state, op.place)
    local later, unused = unitsSince(state, key.unitsAfter), key.unused
    if unused.rate ~= 0 or unused.window ~= 0 or unused.quota ~= 0 then giveBack(state, key, place, later) end
    if isUnused then state.starts = max(0, state.starts - 1) end
    if op.isOver and place then
      local answered, known = max(now, started), state.held
      local lasted = answered - started
      if not isUnused then
        if known == 0 then state.held = max(1, min(lasted, 1000000))
        elseif lasted < known then state.held = max(1, lasted < known / 2 and lasted or ceil((known + lasted) / 2))
        else state.held = known + ceil(min(lasted - known, known) / 2) end
      end
      F.free(state, rule, place, answered, not isUnused and key.cost.window - unused.window or nil)
      F.firstInLine(state, wake)
    end
    hear(state, index, key, op.place, min(op.grantedUs, started), later < huge and later or 0)
    F.keep(state, rule)
  end
  F.publish(wake, F.processOf(op.place))
  return { wake, holds }
end
-- What gives nothing back may be carried out twice.
local isOnce = false
for _, key in ipairs(op.keys) do
  isOnce = isOnce or key.unused.rate ~= 0 or key.unused.window ~= 0 or key.unused.quota ~= 0
end
return F.reply(settle, isOnce)
`;

/** Tells what happened without asking, in Lua: `recordStarts` of `decide.ts`. */
export const RECORD_LUA = `
F.open()
local function forget(state)
  local rest = state.rest
  state.owed, state.measure, state.logs, rest.answered, rest.returned = 0, nil, nil, nil, nil
  rest.cut = { at = now, units = state.units }
  if op.reset == "all" then rest.quota, rest.holds = nil, nil end
end
local function record(state, rule, rate, window, quota, at)
  F.count(state, rule, { rate = rate, window = window, quota = quota }, 1, at)
  if rule.fromAnswer then F.countAnswer(state, rule, window, now) end
end
return F.reply(function()
  local ages = op.agesUs
  local latest = now - (ages[#ages] or 0)
  for index, state in ipairs(states) do
    local key, pause = op.keys[index], op.pauseUs
    local rule, cost = key.rule, key.cost
    if op.reset then forget(state) end
    F.prepare(state, rule, key.slowUs)
    F.see(state, F.processOf(op.asker))
    for which, age in ipairs(ages) do
      local count, spent = op.counts[which], op.units and op.units[which]
      local rate = op.owed and 0 or spent or cost.rate * count
      record(state, rule, rate, spent or cost.window * count, spent or cost.quota * count, now - age)
      state.starts = state.starts + count
    end
    local debt = op.owed and op.owed[index] or 0
    if debt > 0 then record(state, rule, debt, 0, 0, latest) end
    if op.answer then hear(state, index, key, nil, latest, 0) end
    if pause then
      state.rest.holds = state.rest.holds or {}
      state.rest.holds.paused = pause ~= 0 and (pause == cjson.null and huge or now + pause) or nil
    end
    if pause == 0 or op.reset then F.firstInLine(state, wake) end
    F.keep(state, rule)
  end
  F.publish(wake, F.processOf(op.asker))
  return { wake, holds }
end, true)
`;

/** Hears what a process still has, in Lua: `renew` of `decide.ts`. */
export const RENEW_LUA = `
F.open()
return F.reply(function()
  local wake, members, process = {}, 0, op.process
  for index, state in ipairs(states) do
    local key, named = op.keys[index], {}
    if op.isLeaving then state.members = state.members - call("ZREM", F.part(state, "m"), process) else F.see(state, process) end
    for _, asker in ipairs(op.gone) do
      if F.leave(state, asker) < huge then F.firstInLine(state, wake) end
    end
    for _, place in ipairs(key.places) do named[place.id] = place end
    for _, place in ipairs(F.placesOf(state)) do
      local renewed, number = named[place.id], tonumber(string.match(place.id, "#([^#]*)") or "")
      named[place.id] = nil
      if renewed then F.keepAlive(state, place, now + renewed.ttlUs)
      elseif F.processOf(place.id) == process and (op.isLeaving or not (number and number >= op.completeBefore)) then
        F.free(state, key.rule, place, now, place.pendingUnits)
        F.firstInLine(state, wake)
      end
    end
    -- Those that the store has forgotten.
    for _, place in ipairs(key.places) do
      if named[place.id] and place.startedUs + place.maxHoldUs > now then F.takePlace(state, place, now + place.ttlUs) end
    end
    F.lapse(state, key.rule)
    F.keep(state, key.rule)
    members = max(members, state.members)
  end
  F.publish(wake, process)
  return { wake, members }
end)
`;
