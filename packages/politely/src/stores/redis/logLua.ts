/**
 * Logs of starts, in Lua: `core/limits/window.ts`.
 *
 * A log is a string of 16 bytes for each instant at which something started, the oldest first: the instant, and the sum of all units up to it. The
 * first `kept` of its `size` entries lie in Redis as they are, and are read 16 at a time; `tail` has the others, which are written at the end. `before` is
 * the sum before the first entry, `total` that up to the last, `last` the last instant. Before `tidy` nothing can be forgotten.
 */
export const LOG_LUA = `
-- An entry: its instant, and the sum of all units up to it.
function F.entry(log, index)
  if index >= log.kept then return unpack(log.tail[index - log.kept + 1]) end
  if index < log.from or index >= log.to then
    log.from = index - index % 16
    log.to = min(log.from + 16, log.kept)
    log.text = call("GETRANGE", log.name, log.from * 16, log.to * 16 - 1)
    if #log.text < (log.to - log.from) * 16 then F.fail("FOREIGN", log.name) end
  end
  local instant, sum = struct.unpack("<dd", log.text, (index - log.from) * 16 + 1)
  return instant + log.origin, sum
end
function F.sumBefore(log, index)
  if index == log.size then return log.total end
  return index == 0 and log.before or select(2, F.entry(log, index - 1))
end
-- The first entry whose instant (which: 1) or sum (2) is above a number: sought from a likely place on, then by halving.
function F.find(log, which, above, likely)
  local low, high, middle, step = 0, log.size, likely, 1
  while low < high do
    if select(which, F.entry(log, middle)) > above then high = middle else low = middle + 1 end
    middle = step < 16 and min(low + step - 1, high - 1) or floor((low + high) / 2)
    step = step * 2
  end
  return low
end
-- All entries from one on.
function F.load(log, from)
  local entries, text = {}, from < log.kept and call("GETRANGE", log.name, from * 16, log.kept * 16 - 1) or ""
  for at = 1, #text, 16 do
    local instant, sum = struct.unpack("<dd", text, at)
    entries[#entries + 1] = { instant + log.origin, sum }
  end
  for at = max(0, from - log.kept) + 1, #log.tail do entries[#entries + 1] = log.tail[at] end
  return entries
end
function F.flush(log)
  local parts = {}
  for at, entry in ipairs(log.tail) do parts[at] = struct.pack("<dd", entry[1] - log.origin, entry[2]) end
  call("SETRANGE", log.name, log.kept * 16, table.concat(parts))
  log.to = min(log.to, log.kept)
  log.kept, log.tail = log.size, {}
end
-- Adds units at an instant. Those of a start that comes back are negative, and taken from the first entry less than "blur" behind it. Says how many went with
-- their entry.
function F.add(log, at, units, blur)
  local index = at >= log.last and log.size - (at == log.last and 1 or 0) or F.find(log, 1, at - 1, max(0, log.size - 8))
  if index < log.kept then log.tail, log.kept = F.load(log, index), index end
  local tail, own = log.tail, index - log.kept + 1
  local entry = tail[own]
  if not (entry and entry[1] - at < (blur or 1)) then
    if blur then return 0 end
    entry = { at, F.sumBefore(log, index) }
    table.insert(tail, own, entry)
    log.size = log.size + 1
  end
  if units < 0 then units = max(units, F.sumBefore(log, index) - entry[2]) end
  for which = own, #tail do tail[which][2] = tail[which][2] + units end
  if units < 0 or own < #tail then log.tidy = -huge end
  local isGone = units < 0 and entry[2] == F.sumBefore(log, index)
  if isGone then
    table.remove(tail, own)
    log.size = log.size - 1
  end
  log.total, log.last = log.total + units, log.size > 0 and F.entry(log, log.size - 1) or -huge
  return isGone and -units or 0
end
-- Forgets what no window sees any more, once it is half of the log.
function F.tidy(log, time)
  local size = log.size
  if size < 64 or (size < 5120 and time < log.tidy) then return end
  log.tidy = F.entry(log, floor(size / 2)) + log.span
  if size < 5120 and time < log.tidy then return end
  local gone = min(size - 1, max(F.find(log, 1, time - log.span, floor(size / 2)), size - 4096))
  log.before = F.sumBefore(log, gone)
  log.tail, log.kept, log.size, log.tidy = F.load(log, gone), 0, size - gone, -huge
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
  local first = F.find(log, 1, now - window.per, max(0, log.size - window.count))
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
  return F.entry(log, F.find(log, 2, log.total - logged + excess - 1, first)) + window.per
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
