/**
 * Logs of starts, in Lua: `core/limits/window.ts`.
 *
 * A log is a string of 16 bytes for each instant at which something started, the oldest first: the instant, and the sum of all units up to it. The
 * first `kept` of its `size` entries lie in Redis as they are, and are read 16 at a time; `tail` has the others, which are written at the end. `before` is
 * the sum before the first entry, `total` that up to the last, `last` the last instant. Before `tidy` nothing can be forgotten.
 */
export const LOG_LUA = `
-- The instant (offset 0) or the sum (8) of an entry.
function F.entry(log, index, offset)
  if index >= log.kept then return (struct.unpack("<d", log.tail, (index - log.kept) * 16 + offset + 1)) end
  if index < log.from or index >= log.to then
    log.from = index - index % 16
    log.to = min(log.from + 16, log.kept)
    log.text = call("GETRANGE", log.name, log.from * 16, log.to * 16 - 1)
    if #log.text < (log.to - log.from) * 16 then F.fail("FOREIGN", log.name) end
  end
  return (struct.unpack("<d", log.text, (index - log.from) * 16 + offset + 1))
end
function F.instant(log, index) return index < 0 and -huge or F.entry(log, index, 0) + log.origin end
function F.sumBefore(log, index)
  if index == log.size then return log.total end
  return index == 0 and log.before or F.entry(log, index - 1, 8)
end
-- The first entry whose instant or sum is above a number: sought from a likely place on, then by halving.
function F.find(log, offset, above, likely)
  local low, high, middle, step = 0, log.size, likely, 1
  if offset == 0 then above = above - log.origin end
  while low < high do
    if F.entry(log, middle, offset) > above then high = middle else low = middle + 1 end
    middle = step < 16 and min(low + step - 1, high - 1) or floor((low + high) / 2)
    step = step * 2
  end
  return low
end
-- The text of all entries from one on.
function F.tail(log, from)
  if from >= log.kept then return sub(log.tail, (from - log.kept) * 16 + 1) end
  return call("GETRANGE", log.name, from * 16, log.kept * 16 - 1) .. log.tail
end
-- Lets these entries follow the first "from" ones.
function F.put(log, from, text)
  if from >= log.kept then text = sub(log.tail, 1, (from - log.kept) * 16) .. text else log.kept = from end
  log.tail, log.size = text, log.kept + #text / 16
  log.last = F.instant(log, log.size - 1)
end
-- Adds units at an instant. Those of a start that comes back are negative, and taken from the first entry less than "blur" behind it.
function F.add(log, at, units, blur)
  if at >= log.last and not blur then
    log.total = log.total + units
    return F.put(log, at == log.last and log.size - 1 or log.size, struct.pack("<dd", at - log.origin, log.total))
  end
  local index = F.find(log, 0, at - 1, max(0, log.size - 8))
  local isThere = index < log.size and F.instant(log, index) - at < (blur or 1)
  if blur and not isThere then return end
  local before, parts = F.sumBefore(log, index), {}
  local sum = isThere and F.entry(log, index, 8) or before
  if isThere then units, at = max(units, before - sum), F.instant(log, index) end
  if sum + units > before then parts[1] = struct.pack("<dd", at - log.origin, sum + units) end
  if index < log.size then
    local text = F.tail(log, isThere and index + 1 or index)
    for from = 1, #text, 16 do
      local instant, later = struct.unpack("<dd", text, from)
      parts[#parts + 1] = struct.pack("<dd", instant, later + units)
    end
    log.tidy = -huge
  end
  log.total = log.total + units
  F.put(log, index, table.concat(parts))
end
-- Forgets what no window sees any more, once it is half of the log.
function F.tidy(log, time)
  local size = log.size
  if size < 64 or (size < 5120 and time < log.tidy) then return end
  log.tidy = F.instant(log, floor(size / 2)) + log.span
  if size < 5120 and time < log.tidy then return end
  local gone = min(size - 1, max(F.find(log, 0, time - log.span, floor(size / 2)), size - 4096))
  local text = F.tail(log, gone)
  log.before, log.tidy = F.sumBefore(log, gone), -huge
  F.put(log, 0, text)
end
function F.ceilTo(at, grain) return grain <= 1 and at or ceil(at / grain) * grain end
function F.logOf(logs, window)
  for _, log in ipairs(logs or {}) do
    if log.grain == window.grain and (log.grain == 1 or log.span == window.per) then return log end
  end
end
function F.logStart(state, rule, at, units, time)
  if units == 0 or (#rule.windows == 0 and not state.logs) then return end
  for _, log in ipairs(state.logs or F.adoptLogs(state, rule, {}, time)) do
    F.add(log, F.ceilTo(at, log.grain), units)
    F.tidy(log, time)
  end
end
function F.hasLogs(state, rule)
  for _, window in ipairs(rule.windows) do
    local log = F.logOf(state.logs, window)
    if not log or log.span < window.per then return false end
  end
  return true
end
function F.pendingUnits(state) return state.rest.places and state.rest.places.pending or 0 end
-- Units inside a window, and the first of its starts.
function F.windowUsed(state, window)
  local log = F.logOf(state.logs, window)
  if not log then return F.pendingUnits(state), 0 end
  local first = F.find(log, 0, now - window.per, max(0, log.size - window.count))
  return F.pendingUnits(state) + log.total - F.sumBefore(log, first), first, log
end
function F.windowFree(state, rule, window, units)
  local log, pending = F.logOf(state.logs, window), F.pendingUnits(state)
  -- Where all that the log knows would fit, what has left the window need not be known.
  if (log and log.total - log.before or 0) + pending + units <= window.count then return now end
  local used, first = F.windowUsed(state, window)
  local excess, logged = used + units - window.count, used - pending
  if excess <= 0 then return now end
  if excess > logged then return (F.firstPlace(state) or huge) + rule.maxHold + window.per end
  return F.instant(log, F.find(log, 8, log.total - logged + excess - 1, first)) + window.per
end
-- Every interval of a window's length holds at most "count" units. Those ahead fill whole windows one after the other.
function F.windowsReady(state, rule, cost, ahead, tell)
  local at = now
  for which, window in ipairs(rule.windows) do
    local before = cost.window + ahead.window - 1
    local later = before < window.count and 0 or floor(before / window.count) * window.per
    local latest = F.windowFree(state, rule, window, math.fmod(before, window.count) + 1)
    local ready = later == 0 and latest or max(latest, now) + later
    at = max(at, ready)
    if tell and ready > now then
      local isAwaited = latest > now and F.pendingUnits(state) > 0
      tell("window", isAwaited and min(latest, now + window.per) + later or ready, isAwaited and latest, nil, which)
    end
  end
  return at
end
`;
