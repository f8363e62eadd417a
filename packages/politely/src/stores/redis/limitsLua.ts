import { INCIDENT_MEMORY_US, PROBE_PATIENCE_US } from "../../core/incident.js";

/** What the limits of a key say and take, in Lua: `core/decide.ts` and `core/limits/`. A cost is a key of an operation, or what has `rate`, `window` and `quota`. */
export const LIMITS_LUA = `
local NOBODY = { requests = 0, rate = 0, window = 0, quota = 0 }
function F.firstPlace(state, otherwise)
  local places = state.rest.places
  return places and places.first or otherwise
end
function F.lastOf(state)
  local cut = state.rest.cut
  return cut and (state.last < cut.at or state.units == cut.units) and -huge or state.last
end
function F.isAnswerDue(state, rule) return rule.fromAnswer and F.firstPlace(state) ~= nil end
function F.spacedFrom(state, rule)
  if not rule.fromAnswer then return F.lastOf(state) end
  local first = F.firstPlace(state)
  return first and first + rule.maxHold or max(F.lastOf(state), state.rest.answered or -huge)
end
function F.owedAt(count, owed, seen, at) return at <= seen and owed or max(0, owed - (at - seen) * count) end
function F.slowdownReady(slow, from)
  return min(slow.till, slow.gap == 0 and slow.hold or max(slow.hold, from + slow.gap))
end
function F.quotaUsed(state, calendar)
  local use = state.rest.quota
  return use and F.period(state, calendar) <= use.period and use.used or 0
end
-- When a start is possible after those ahead: "readyAt". Every limit in the way is added to "told", if there is one.
function F.ready(state, rule, cost, count, ahead, told, index)
  local at, rest, isDue = now, state.rest, told and F.isAnswerDue(state, rule)
  local function tell(limit, when, awaited, because, which)
    told[#told + 1] = { index = index - 1, limit = limit, at = when, awaited = awaited, because = because, which = which }
  end
  -- Where only an answer can tell, "awaited" is when it is no longer waited for, and "earliest" when a start might be possible.
  local function bound(limit, when, awaited, earliest, because, which)
    at = max(at, when)
    if told and when > now then tell(limit, awaited and earliest or when, awaited, because, which) end
  end
  local function slowed(limit, slow)
    local latest = F.slowdownReady(slow, F.spacedFrom(state, rule))
    bound(limit, latest, isDue and latest, F.slowdownReady(slow, now), slow.because)
  end
  local holds = rest.holds or NOBODY
  local incident, headers = not rule.off and holds.incident, not rule.off and holds.headers
  if holds.paused then bound("pause", holds.paused) end
  if incident then
    local till = incident.till
    if incident.probe == "out" then till = max(till, incident.probeAt + max(${PROBE_PATIENCE_US}, rule.gap or 0)) end
    if incident.till <= now then bound("probe", till, till, now, incident.because)
    else bound("cooldown", incident.till, nil, nil, incident.because) end
    at = max(at, till)
  end
  if headers and headers.till > now then slowed("headers", headers) end
  if state.slow and not rule.off then slowed("robots", { gap = state.slow, hold = -huge, till = huge, because = "" }) end
  if rule.gap then
    local latest = F.spacedFrom(state, rule) + rule.gap
    local when = ahead.requests == 0 and latest or max(latest, now) + ahead.requests * rule.gap
    bound("minDelay", when, isDue and latest, now + (ahead.requests + 1) * rule.gap)
  end
  if rule.count then
    local room = (rule.burst - cost.rate * count - ahead.rate) * rule.per
    local when = state.owed > room and state.seen + ceil((state.owed - room) / rule.count) or state.seen
    bound("rate", room < 0 and max(when, now + ceil(-room / rule.count)) or when)
  end
  for which, window in ipairs(rule.windows) do
    local before = cost.window * count + ahead.window - 1
    local later = before < window.count and 0 or floor(before / window.count) * window.per
    local latest = F.windowFree(state, rule, window, math.fmod(before, window.count) + 1)
    local isAwaited = latest > now and F.pendingUnits(state) > 0
    local when = later == 0 and latest or max(latest, now) + later
    bound("window", when, isAwaited and latest, min(latest, now + window.per) + later, nil, which)
  end
  local quota = rule.quota
  if quota and F.quotaUsed(state, quota.calendar) + cost.quota * count + ahead.quota > quota.count then
    bound("quota", F.periodEnd(state, quota.calendar))
  end
  if rule.places and (rest.places and rest.places.count or 0) + ahead.requests >= rule.places then
    local latest = F.firstPlace(state, state.last) + rule.maxHold
    if told then tell("concurrency", now, latest) end
    at = max(at, ahead.requests == 0 and latest or now + rule.maxHold)
  end
  return at
end
function F.periodEnd(state, calendar)
  local _, ends = F.period(state, calendar)
  return now + max(1, ceil((ends - floor(wall / 1000)) * 1000))
end
function F.charge(state, bucket, units, at)
  state.owed = min(${Number.MAX_SAFE_INTEGER}, F.owedAt(bucket.count, state.owed, state.seen, at) + units * bucket.per)
  state.seen = max(state.seen, at)
end
function F.bucketOf(state, rule) return rule.count and rule or state.measure end
-- Counts starts in everything but places, and says in which period of the quota.
function F.count(state, rule, cost, count, at)
  state.last = max(state.last, at)
  local bucket = F.bucketOf(state, rule)
  if bucket then F.charge(state, bucket, cost.rate * count, at) end
  state.units = (state.units + cost.rate * count) % ${2 ** 32}
  if not rule.fromAnswer then F.logStart(state, rule, at, cost.window * count, now) end
  local quota = rule.quota or state.rest.quota
  if not quota then return -1 end
  local period, ends = F.period(state, quota.calendar)
  -- A start of so long ago that it was in an earlier period spends nothing of this.
  if at < now and floor(wall / 1000) - (now - at) / 1000 < period then return -1 end
  local used = F.quotaUsed(state, quota.calendar) + cost.quota * count
  state.rest.quota = { calendar = quota.calendar, period = period, ends = ends, used = used }
  return period
end
function F.countAnswer(state, rule, units, at)
  F.logStart(state, rule, at, units, at)
  state.rest.answered = max(state.rest.answered or -huge, at)
end
-- Keeps a key for as long as it owes something to somebody with that rule.
function F.keep(state, rule)
  local rest, till = state.rest, now + 300000000
  local holds, bucket, quota = rest.holds, F.bucketOf(state, rule), rest.quota
  if F.firstPlace(state) then till = max(till, state.last + rule.maxHold) end
  if rule.gap then till = max(till, F.spacedFrom(state, rule) + rule.gap) end
  if bucket and state.owed ~= 0 then till = max(till, state.seen + ceil(state.owed / bucket.count)) end
  for _, log in ipairs(state.logs or {}) do till = max(till, log.last + log.span) end
  if quota and F.quotaUsed(state, quota.calendar) ~= 0 then till = max(till, F.periodEnd(state, quota.calendar)) end
  if holds then
    if holds.incident and not F.isForgotten(holds.incident) then till = max(till, holds.incident.till) end
    till = max(till, holds.headers and holds.headers.till or till, holds.paused or till)
  end
  if state.slow then till = max(till, F.spacedFrom(state, rule) + state.slow) end
  state.keep = till == huge and ${Number.MAX_SAFE_INTEGER} or max(state.keep, till)
end
function F.isForgotten(incident)
  return now >= incident.till + (incident.throttleStep + incident.errorStep == 0 and 0 or ${INCIDENT_MEMORY_US})
end
`;
