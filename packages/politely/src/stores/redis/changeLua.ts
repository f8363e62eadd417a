/** Lets a key be read under the rule of whoever asks, in Lua: `prepare` of `decide.ts`, and `core/change.ts`. */
export const CHANGE_LUA = `
-- A debt is paid at the slower of the rate it was made in and the asker's, and then counts in the asker's.
function F.convert(state, from, to)
  if from.count == to.count and from.per == to.per then return end
  if from.count / from.per < to.count / to.per then
    state.owed, state.seen = F.owedAt(from.count, state.owed, state.seen, now), max(now, state.seen)
  end
  -- owed * to.per / from.per, rounded up. The product may have more digits than a double, so it is divided as on paper, bit by bit.
  local rest, times, by, quotient, over = math.fmod(state.owed, from.per), to.per, from.per, 0, 0
  local whole = (state.owed - rest) / by * times
  local function add(part)
    if over >= by - part then quotient, over = quotient + 1, over - (by - part) else over = over + part end
  end
  for power = 52, 0, -1 do
    quotient = quotient * 2
    add(over)
    if times >= 2 ^ power then
      times = times - 2 ^ power
      add(rest)
    end
  end
  state.owed = min(${Number.MAX_SAFE_INTEGER}, whole + quotient + (over > 0 and 1 or 0))
end
-- Kinds of limit that are new to a key know the starts that it knows.
function F.adopt(state, rule, isNewBucket)
  local rest, known, pending, places, last = state.rest, {}, {}, F.placesOf(state), F.lastOf(state)
  local placed, isPlaced, bucket = 0, false, not isNewBucket and F.bucketOf(state, rule) or nil
  for _, place in ipairs(places) do
    local isPending = place.pendingUnits > 0
    local list, units = isPending and pending or known, isPending and place.pendingUnits or place.units
    list[#list + 1] = { at = place.startedUs, units = units }
    placed, isPlaced = placed + units, isPlaced or place.startedUs == last
  end
  if state.logs or last == -huge then known = F.logged(state)
  else
    local debt = bucket and ceil(F.owedAt(bucket.count, state.owed, state.seen, last) / bucket.per) or 0
    local units = max(isPlaced and 0 or 1, debt - placed)
    if units > 0 then known[#known + 1] = { at = last, units = units } end
  end
  local all = {}
  for _, start in ipairs(known) do all[#all + 1] = start end
  for _, start in ipairs(pending) do all[#all + 1] = start end
  table.sort(all, function(one, other) return one.at < other.at end)
  if isNewBucket then
    for _, start in ipairs(all) do F.charge(state, rule, start.units, start.at) end
  elseif rule.count then
    state.owed, state.seen = F.owedAt(rule.count, state.owed, state.seen, now), max(state.seen, now)
  end
  local quota, from = rule.quota, rest.quota
  if quota and not (from and from.calendar == quota.calendar) then
    local period, ends = F.period(state, quota.calendar)
    local counted = 0
    for _, start in ipairs(all) do
      if floor(wall / 1000) - (now - start.at) / 1000 >= period then counted = counted + start.units end
    end
    local used = max(counted, from and F.quotaUsed(state, from.calendar) or 0)
    if used > 0 then rest.quota = { calendar = quota.calendar, period = period, ends = ends, used = used } end
  end
  if #rule.windows == 0 then return end
  local more = state.logs and {} or known
  -- Those in flight that would have been counted at their answers count from their starts now.
  if not rule.fromAnswer and rest.places then
    for _, start in ipairs(pending) do more[#more + 1] = start end
    for _, place in ipairs(places) do
      if place.pendingUnits ~= 0 then
        place.pendingUnits = 0
        F.putPlace(state, place)
      end
    end
    rest.places.pending = 0
  end
  if state.logs or #more > 0 then F.adoptLogs(state, rule, more, now) end
end
-- All starts that the longest log knows, oldest first.
function F.logged(state)
  local known, longest = {}, nil
  for _, log in ipairs(state.logs or {}) do
    if not longest or log.span > longest.span then longest = log end
  end
  if not longest then return known end
  local text, before = F.tail(longest, 0), longest.base
  for from = 1, #text, 16 do
    local at, sum = struct.unpack("<dd", text, from)
    known[#known + 1], before = { at = at + longest.shift, units = sum - before }, sum
  end
  return known
end
-- Gives every window of a rule a log that looks back as far as it does, and adds starts to all logs.
function F.adoptLogs(state, rule, more, time)
  local known, logs = F.logged(state), state.logs or {}
  for _, start in ipairs(more) do
    known[#known + 1] = start
    for _, log in ipairs(logs) do F.insert(log, F.ceilTo(start.at, log.grain), start.units) end
  end
  table.sort(known, function(one, other) return one.at < other.at end)
  for _, window in ipairs(rule.windows) do
    local old, others, id, blur = F.logOf({ logs = logs }, window), {}, 1, 0
    if not old or old.span < window.per then
      for _, log in ipairs(logs) do
        if log ~= old then others[#others + 1], id, blur = log, max(id, log.id + 1), max(blur, log.blur) end
      end
      id = old and old.id or id
      local parts, size, log = {}, 0, {
        id = id, name = F.part(state, id), shift = state.shift, span = window.per, grain = window.grain, blur = blur + window.grain,
        first = 0, size = 0, capacity = 16, base = 0, total = 0, last = -huge, tidy = -huge,
      }
      for _, start in ipairs(known) do
        local at = F.ceilTo(start.at, log.grain)
        if log.last < at then size = size + 1 end
        log.last, log.total = at, log.total + start.units
        parts[size] = struct.pack("<dd", at - log.shift, log.total)
      end
      -- Also an empty log is there, and so has an expiry.
      write("SET", log.name, "")
      F.put(log, 0, table.concat(parts))
      F.tidy(log, time)
      others[#others + 1], logs = log, others
    end
  end
  state.logs, state.hasGrown = logs, true
  return logs
end
function F.move(state, by)
  local rest = state.rest
  local holds, places = rest.holds or {}, rest.places
  local function moveBy(fields, ...)
    for _, name in ipairs({ ... }) do
      if fields and fields[name] then fields[name] = fields[name] + by end
    end
  end
  moveBy(state, "changed", "last", "seen", "shift", "heard", "moved")
  for _, log in ipairs(state.logs or {}) do moveBy(log, "last", "tidy", "shift") end
  moveBy(rest, "answered")
  moveBy(places, "first", "lapse")
  moveBy(rest.cut, "at")
  moveBy(rest.returned, "previous")
  moveBy(holds, "paused")
  moveBy(holds.incident, "till", "began", "probeAt")
  moveBy(holds.headers, "hold", "till", "started")
end
`;

/** Brings a key up to date for whoever asks, in Lua: `prepare` of `decide.ts`. */
export const PREPARE_LUA = `
function F.hasLogs(state, rule)
  for _, window in ipairs(rule.windows) do
    local log = F.logOf(state, window)
    if not log or log.span < window.per then return false end
  end
  return true
end
function F.prepare(state, rule, slow)
  local rest = state.rest
  if rest.places then F.lapse(state, rule) end
  if rest.places and rest.places.count == 0 and not rule.fromAnswer and not rule.places then rest.places = nil end
  local isNewBucket, quota = rule.count and not state.measure, rest.quota
  if rule.count and not isNewBucket then F.convert(state, state.measure, rule) end
  local isNewQuota = rule.quota and not (quota and quota.calendar == rule.quota.calendar)
  if isNewBucket or isNewQuota or not F.hasLogs(state, rule) then F.adopt(state, rule, isNewBucket) end
  if rule.count then state.measure = rule end
  state.slow = slow
end
`;
