import { INCIDENT_MEMORY_US, PROBE_PATIENCE_US } from "../../core/incident.js";

const MOST = Number.MAX_SAFE_INTEGER;

/**
 * What the limits of a key say and take, in Lua: `core/decide.ts` and `core/limits/`. A cost has `rate`, `window` and `quota`, those ahead `requests` as well;
 * a bucket has `count`, `per` and `burst`, like a rule and a key. `tell` is called as in the core, but with the number of a window and no words.
 */
export const LIMITS_LUA = `
function F.owedAt(count, owed, seen, at) return at <= seen and owed or max(0, owed - (at - seen) * count) end
function F.rateReady(state, rule, cost, ahead, tell)
  local room = (rule.burst - cost.rate - ahead.rate) * rule.per
  local at = state.owed > room and state.seen + ceil((state.owed - room) / rule.count) or state.seen
  -- A full bucket cannot save up for those ahead: their units come out of what it holds now.
  if room < 0 then at = max(at, now + ceil(-room / rule.count)) end
  if tell and at > now then tell("rate", at) end
  return at
end
-- When a start is possible after those ahead: "readyAt".
function F.ready(state, rule, cost, ahead, tell)
  local at, rest = now, state.rest
  if rest.paused or rest.incident or rest.headers or state.slow then at = F.holdsReady(state, rule, tell) end
  if rule.gap then at = max(at, F.gapReady(state, rule, ahead, tell)) end
  if rule.count then at = max(at, F.rateReady(state, rule, cost, ahead, tell)) end
  if rule.windows[1] then at = max(at, F.windowsReady(state, rule, cost, ahead, tell)) end
  if rule.quota then at = max(at, F.quotaReady(state, rule, cost, ahead, tell)) end
  return rule.places and max(at, F.placesReady(state, rule, ahead, tell)) or at
end
function F.charge(state, bucket, units, at)
  state.owed = min(${MOST}, F.owedAt(bucket.count, state.owed, state.seen, at) + units * bucket.per)
  state.seen = max(state.seen, at)
end
-- Where anybody has to know starts in flight, all of them have a place.
function F.isFollowed(state, rule) return rule.fromAnswer or rule.places or state.rest.places end
function F.bucketOf(state, rule) return rule.count and rule or state.count > 0 and state end
-- Counts a start in everything but places, and says in which period of the quota.
function F.count(state, rule, cost, at)
  local bucket, quota = F.bucketOf(state, rule), rule.quota or state.rest.quota
  state.last, state.units = max(state.last, at), (state.units + cost.rate) % ${2 ** 32}
  if bucket then F.charge(state, bucket, cost.rate, at) end
  if not rule.fromAnswer and (rule.windows[1] or state.logs) then F.logStart(state, rule, at, cost.window, now) end
  return quota and F.quotaTake(state, quota.calendar, cost.quota, at) or -1
end
-- Keeps a key for as long as it owes something to somebody with that rule.
function F.keep(state, rule)
  local till, bucket = now + 300000000, F.bucketOf(state, rule)
  if bucket and state.owed ~= 0 then till = max(till, state.seen + ceil(state.owed / bucket.count)) end
  if rule.gap then till = max(till, F.spacedFrom(state, rule) + rule.gap) end
  for _, log in ipairs(state.logs or {}) do till = max(till, log.last + log.span) end
  if next(state.rest) or state.slow then till = F.restOwesUntil(state, rule, till) end
  state.keep = till == huge and ${MOST} or max(state.keep, till)
end
-- Lets a key be read under the rule of whoever asks: "prepare" of "decide.ts".
function F.prepare(state, rule, slow)
  local rest = state.rest
  if rest.places then F.lapse(state, rule) end
  if rest.places and rest.places.count == 0 and not rule.fromAnswer and not rule.places then rest.places = nil end
  local isNewBucket = rule.count and state.count == 0
  if rule.count and not isNewBucket and (state.count ~= rule.count or state.per ~= rule.per) then F.convert(state, rule) end
  local isNewQuota = rule.quota and not (rest.quota and rest.quota.calendar == rule.quota.calendar)
  if isNewBucket or isNewQuota or (rule.windows[1] and not F.hasLogs(state, rule)) then F.adopt(state, rule, isNewBucket) end
  if rule.count then state.count, state.per, state.burst = rule.count, rule.per, rule.burst end
  state.slow = slow
end
`;

/** The limits that few keys have, and what holds a key: `core/limits/` and `core/incident.ts`. */
export const FEW_LUA = `
function F.firstPlace(state) return state.rest.places and state.rest.places.first end
function F.lastOf(state)
  local cut = state.rest.cut
  return cut and (state.last < cut.at or state.units == cut.units) and -huge or state.last
end
function F.isAnswerDue(state, rule) return rule.fromAnswer and F.firstPlace(state) end
function F.spacedFrom(state, rule)
  if not rule.fromAnswer then return F.lastOf(state) end
  local first = F.firstPlace(state)
  return first and first + rule.maxHold or max(F.lastOf(state), state.rest.answered or -huge)
end
function F.gapReady(state, rule, ahead, tell)
  local latest = F.spacedFrom(state, rule) + rule.gap
  local at = ahead.requests == 0 and latest or max(latest, now) + ahead.requests * rule.gap
  if tell and at > now then
    local isDue = F.isAnswerDue(state, rule)
    tell("minDelay", isDue and now + (ahead.requests + 1) * rule.gap or at, isDue and latest)
  end
  return at
end
function F.placesReady(state, rule, ahead, tell)
  local places = state.rest.places
  if (places and places.count or 0) + ahead.requests < rule.places then return now end
  local latest = (F.firstPlace(state) or state.last) + rule.maxHold
  if tell then tell("concurrency", now, latest) end
  return ahead.requests == 0 and latest or now + rule.maxHold
end
-- When a period of a calendar began and when it ends, in milliseconds. One that is running does not end sooner since the clock was set back.
function F.period(state, calendar)
  local ms, use, bounds = floor(wall / 1000), state.rest.quota, asked.periods[calendar] or {}
  if use and use.calendar == calendar and ms < use.ends then return use.period, use.ends end
  for at = 1, #bounds - 1 do
    if ms >= bounds[at] and ms < bounds[at + 1] then return bounds[at], bounds[at + 1] end
  end
  F.fail("PERIOD", string.format("%.0f ", ms) .. calendar)
end
function F.quotaUsed(state, calendar)
  local use = state.rest.quota
  return use and F.period(state, calendar) <= use.period and use.used or 0
end
function F.periodEnd(state, calendar)
  local _, ends = F.period(state, calendar)
  return now + max(1, ceil((ends - floor(wall / 1000)) * 1000))
end
function F.quotaReady(state, rule, cost, ahead, tell)
  local quota = rule.quota
  if F.quotaUsed(state, quota.calendar) + cost.quota + ahead.quota <= quota.count then return now end
  local at = F.periodEnd(state, quota.calendar)
  if tell then tell("quota", at) end
  return at
end
function F.quotaTake(state, calendar, units, at)
  local period, ends = F.period(state, calendar)
  -- A start of so long ago that it was in an earlier period spends nothing of this.
  if at < now and floor(wall / 1000) - (now - at) / 1000 < period then return -1 end
  state.rest.quota = { calendar = calendar, period = period, ends = ends, used = F.quotaUsed(state, calendar) + units }
  return period
end
local function slowedReady(state, rule, limit, slow, tell)
  local function from(start) return min(slow.till, slow.gap == 0 and slow.hold or max(slow.hold, start + slow.gap)) end
  local latest, isDue = from(F.spacedFrom(state, rule)), F.isAnswerDue(state, rule)
  if tell and latest > now then tell(limit, isDue and from(now) or latest, isDue and latest, slow.because) end
  return latest
end
-- When neither a person nor a cooldown, its probe or what the site asks for stands in the way.
function F.holdsReady(state, rule, tell)
  local at, incident, headers, paused = now, state.rest.incident, state.rest.headers, state.rest.paused
  if paused and paused > now then
    at = paused
    if tell then tell("pause", paused) end
  end
  if rule.off then return at end
  if incident then
    local till = incident.till
    if incident.probe == "out" then till = max(till, incident.probeAt + max(${PROBE_PATIENCE_US}, rule.gap or 0)) end
    if tell and incident.till > now then tell("cooldown", incident.till, nil, incident.because)
    elseif tell and till > now then tell("probe", now, till, incident.because) end
    at = max(at, till)
  end
  if headers and headers.till > now then at = max(at, slowedReady(state, rule, "headers", headers, tell)) end
  if not state.slow then return at end
  return max(at, slowedReady(state, rule, "robots", { gap = state.slow, hold = -huge, till = huge, because = "" }, tell))
end
function F.isForgotten(incident)
  return now >= incident.till + (incident.throttleStep + incident.errorStep == 0 and 0 or ${INCIDENT_MEMORY_US})
end
function F.restOwesUntil(state, rule, till)
  local quota, incident, headers, paused = state.rest.quota, state.rest.incident, state.rest.headers, state.rest.paused
  if F.firstPlace(state) then till = max(till, state.last + rule.maxHold) end
  if quota and F.quotaUsed(state, quota.calendar) ~= 0 then till = max(till, F.periodEnd(state, quota.calendar)) end
  if incident and not F.isForgotten(incident) then till = max(till, incident.till) end
  if state.slow then till = max(till, F.spacedFrom(state, rule) + state.slow) end
  return max(till, headers and headers.till or till, paused or till)
end
function F.countAnswer(state, rule, units, at)
  if rule.windows[1] or state.logs then F.logStart(state, rule, at, units, at) end
  state.rest.answered = max(state.rest.answered or -huge, at)
end
`;

/** What becomes of a key under another rule, in Lua: `convertDebt` of `decide.ts`, and `core/change.ts`. A start is here an instant (`at`) and its units. */
export const CHANGE_LUA = `
-- A debt is paid at the slower of the rate it was made in and the asker's, and then counts in the asker's.
function F.convert(state, rule)
  if state.count / state.per < rule.count / rule.per then
    state.owed, state.seen = F.owedAt(state.count, state.owed, state.seen, now), max(now, state.seen)
  end
  -- owed * rule.per / state.per, rounded up. The product may have more digits than a number, so it is divided as on paper, bit by bit.
  local by, times, over, quotient = state.per, rule.per, 0, 0
  local rest = math.fmod(state.owed, by)
  local function add(part) quotient, over = quotient + (over >= by - part and 1 or 0), math.fmod(over + part, by) end
  local whole = (state.owed - rest) / by * times
  for power = 52, 0, -1 do
    quotient = quotient * 2
    add(over)
    if times >= 2 ^ power then
      times = times - 2 ^ power
      add(rest)
    end
  end
  state.owed = min(${MOST}, whole + quotient + (over > 0 and 1 or 0))
end
-- All starts that the longest log knows, and others, oldest first.
local function joined(state, ...)
  local all, longest = {}, nil
  for _, log in ipairs(state.logs or {}) do
    if not longest or log.span > longest.span then longest = log end
  end
  local before = longest and longest.before
  for at, entry in ipairs(longest and F.load(longest, 0) or {}) do
    all[at], before = { at = entry[1], units = entry[2] - before }, entry[2]
  end
  for _, list in ipairs({ ... }) do
    for _, start in ipairs(list) do all[#all + 1] = start end
  end
  table.sort(all, function(one, other) return one.at < other.at end)
  return all
end
-- Gives every window of a rule a log that looks back as far as it does, and adds starts to all logs.
function F.adoptLogs(state, rule, more, time)
  local known, logs = joined(state, more), state.logs or {}
  for _, log in ipairs(logs) do
    for _, start in ipairs(more) do F.add(log, F.ceilTo(start.at, log.grain), start.units) end
  end
  for _, window in ipairs(rule.windows) do
    local old, others, blur = F.logOf(logs, window), {}, 0
    if not old or old.span < window.per then
      for _, log in ipairs(logs) do
        if log ~= old then others[#others + 1], blur = log, max(blur, log.blur) end
      end
      local log = {
        name = F.logName(state.name, window.grain, window.per), origin = state.origin, span = window.per, grain = window.grain,
        blur = blur + window.grain, size = 0, before = 0, total = 0, last = -huge, tidy = -huge, kept = 0, tail = {}, from = 0, to = 0,
      }
      for _, start in ipairs(known) do F.add(log, F.ceilTo(start.at, log.grain), start.units) end
      F.tidy(log, time)
      others[#others + 1], logs = log, others
    end
  end
  state.logs = logs[1] and logs
  return logs
end
-- Kinds of limit that are new to a key know the starts that it knows.
function F.adopt(state, rule, isNewBucket)
  local rest, more, pending, last = state.rest, {}, {}, F.lastOf(state)
  local bucket, placed, isPlaced, isUnlogged = not isNewBucket and F.bucketOf(state, rule), 0, false, not state.logs and last > -huge
  for _, place in ipairs(F.placesOf(state)) do
    local isPending, at = place.pendingUnits > 0, place.startedUs
    local list, units = isPending and pending or more, isPending and place.pendingUnits or place.units
    if isPending or isUnlogged then list[#list + 1] = { at = at, units = units } end
    placed, isPlaced = placed + units, isPlaced or at == last
  end
  if isUnlogged then
    local debt = bucket and ceil(F.owedAt(bucket.count, state.owed, state.seen, last) / bucket.per) or 0
    local units = max(isPlaced and 0 or 1, debt - placed)
    if units > 0 then more[#more + 1] = { at = last, units = units } end
  end
  local all, quota, from = joined(state, more, pending), rule.quota, rest.quota
  if isNewBucket then
    for _, start in ipairs(all) do F.charge(state, rule, start.units, start.at) end
  elseif rule.count then
    state.owed, state.seen = F.owedAt(rule.count, state.owed, state.seen, now), max(state.seen, now)
  end
  if quota and not (from and from.calendar == quota.calendar) then
    local period, ends = F.period(state, quota.calendar)
    local counted = 0
    for _, start in ipairs(all) do
      if floor(wall / 1000) - (now - start.at) / 1000 >= period then counted = counted + start.units end
    end
    local used = max(counted, from and F.quotaUsed(state, from.calendar) or 0)
    if used > 0 then rest.quota = { calendar = quota.calendar, period = period, ends = ends, used = used } end
  end
  if not rule.windows[1] then return end
  -- Those in flight that would have been counted at their answers count from their starts now.
  if not rule.fromAnswer and rest.places then
    for _, start in ipairs(pending) do more[#more + 1] = start end
    rest.places.pending = 0
    for _, place in ipairs(F.placesOf(state)) do
      place.pendingUnits = 0
      F.putPlace(state, place)
    end
  end
  if state.logs or more[1] then F.adoptLogs(state, rule, more, now) end
end
`;
