/**
 * Logs of starts, in Lua: `core/limits/window.ts`.
 *
 * A log is a ring in a string: 16 bytes for each instant at which something started, the instant and the sum of all units up to it. It is read
 * 16 entries at a time, and only what changes is written. `base` is the sum before the first entry, `total` that up to the last.
 */
export const LOG_LUA = `
function F.load(log, from)
  local slot = (log.first + from) % log.capacity
  local count = min(16, log.size - from, log.capacity - slot)
  log.from, log.to, log.text = from, from + count, call("GETRANGE", log.name, slot * 16, (slot + count) * 16 - 1)
  if #log.text < count * 16 then F.fail("FOREIGN", 0, log.name) end
end
function F.entry(log, index, offset)
  if not log.text or index < log.from or index >= log.to then F.load(log, index) end
  return (struct.unpack("<d", log.text, (index - log.from) * 16 + offset + 1))
end
function F.instant(log, index) return F.entry(log, index, 0) + log.shift end
function F.sumBefore(log, index) return index == 0 and log.base or F.entry(log, index - 1, 8) end
-- The first entry whose instant (offset 0) or sum (8) is above a number. It is likely one of the 16 from "hint" on.
function F.find(log, offset, above, hint)
  local low, high = 0, log.size
  if offset == 0 then above = above - log.shift end
  if hint > 0 then
    if F.entry(log, hint - 1, offset) > above then high = hint - 1 else low = hint end
  end
  local near = min(low + 14, high - 1)
  if near > low then
    F.entry(log, low, offset)
    if F.entry(log, near, offset) > above then high = near else low = near + 1 end
  end
  while low < high do
    if high - low <= 16 then F.entry(log, low, offset) end
    local middle = floor((low + high) / 2)
    if F.entry(log, middle, offset) > above then high = middle else low = middle + 1 end
  end
  return low
end
-- The text of all entries from one on.
function F.tail(log, from)
  if from == log.size then return "" end
  if log.isWhole then return sub(log.text, (from - log.from) * 16 + 1) end
  local slot = (log.first + from) % log.capacity
  local over = slot + log.size - from - log.capacity
  local text = call("GETRANGE", log.name, slot * 16, (slot + log.size - from) * 16 - 1)
  return over > 0 and text .. call("GETRANGE", log.name, 0, over * 16 - 1) or text
end
-- Lets these entries follow the first "from" ones. Who only looks has the whole log at hand from then on.
function F.put(log, from, text)
  if isLook then
    log.text = sub(F.tail(log, 0), 1, from * 16) .. text
    log.isWhole, log.from, log.to = true, 0, from + #text / 16
  else
    local size = from + #text / 16
    if size > log.capacity then
      if log.first > 0 then write("SET", log.name, F.tail(log, 0), "KEEPTTL") end
      log.first = 0
      while log.capacity < size do log.capacity = log.capacity < 1024 and log.capacity * 2 or log.capacity + 512 end
    end
    local slot = (log.first + from) % log.capacity
    local room = (log.capacity - slot) * 16
    if #text > 0 then write("SETRANGE", log.name, slot * 16, sub(text, 1, room)) end
    if #text > room then write("SETRANGE", log.name, 0, sub(text, room + 1)) end
    if log.isWhole or (log.text and from < log.to) then log.isWhole, log.text = false, nil end
  end
  log.size = from + #text / 16
end
-- The same entries with sums that differ by so much.
function F.summed(text, from, by)
  local parts = {}
  for at = from, #text, 16 do
    local instant, sum = struct.unpack("<dd", text, at)
    parts[#parts + 1] = struct.pack("<dd", instant, sum + by)
  end
  return table.concat(parts)
end
function F.insert(log, at, units)
  local index, sum, rest = log.size, log.total + units, ""
  -- Mostly it is the newest. Where others lie behind it, their sums grow.
  if index > 0 and log.last == at then index = index - 1
  elseif log.last > at then
    index = F.find(log, 0, at - 1, max(0, index - 16))
    local tail, isThere = F.tail(log, index), F.instant(log, index) == at
    sum = units + (isThere and F.entry(log, index, 8) or F.sumBefore(log, index))
    rest, log.tidy = F.summed(tail, isThere and 17 or 1, units), -huge
  end
  log.total, log.last = log.total + units, max(log.last, at)
  F.put(log, index, struct.pack("<dd", at - log.shift, sum) .. rest)
end
-- Forgets what no window sees any more, once it is half of the log. Before "log.tidy" it is not, unless an entry was put in or taken out in the middle.
function F.tidy(log, time)
  local size, since = log.size, time - log.span
  if size < 64 or (size < 5120 and time < log.tidy) then return end
  log.tidy = F.instant(log, floor(size / 2)) + log.span
  if size < 5120 and time < log.tidy then return end
  local gone = min(size - 1, max(F.find(log, 0, since, 0), size - 4096))
  log.base, log.tidy = F.sumBefore(log, gone), -huge
  log.first, log.size = (log.first + gone) % log.capacity, size - gone
  if log.text then log.from, log.to = log.from - gone, log.to - gone end
end
function F.ceilTo(at, grain) return grain <= 1 and at or ceil(at / grain) * grain end
function F.logOf(state, window)
  for _, log in ipairs(state.logs or {}) do
    if log.grain == window.grain and (log.grain == 1 or log.span == window.per) then return log end
  end
end
function F.logStart(state, rule, at, units, time)
  if units == 0 or (#rule.windows == 0 and not state.logs) then return end
  for _, log in ipairs(state.logs or F.adoptLogs(state, rule, {}, time)) do
    F.insert(log, F.ceilTo(at, log.grain), units)
    F.tidy(log, time)
  end
end
-- Takes units of one start out of the logs again.
function F.unlog(state, started, units)
  for _, log in ipairs(state.logs or {}) do
    local index, left = F.find(log, 0, started - 1, max(0, log.size - 16)), units
    while left ~= 0 and index < log.size and F.instant(log, index) - started < log.blur do
      local lying = F.entry(log, index, 8) - F.sumBefore(log, index)
      local tail, less, isGone = F.tail(log, index), min(left, lying), left >= lying
      F.put(log, index, F.summed(tail, isGone and 17 or 1, -less))
      log.total = log.total - less
      log.last, log.tidy = log.size > 0 and F.instant(log, log.size - 1) or -huge, -huge
      left = isGone and left - less or 0
    end
  end
end
function F.pendingUnits(state) return state.rest.places and state.rest.places.pending or 0 end
-- Units inside a window, and the first of its starts.
function F.windowUsed(state, window)
  local log = F.logOf(state, window)
  if not log then return F.pendingUnits(state), 0 end
  local first = F.find(log, 0, now - window.per, max(0, log.size - window.count))
  return F.pendingUnits(state) + log.total - F.sumBefore(log, first), first, log
end
function F.windowFree(state, rule, window, units)
  local log, pending = F.logOf(state, window), F.pendingUnits(state)
  -- Where all that the log knows would fit, what has left the window need not be known.
  if (log and log.total - log.base or 0) + pending + units <= window.count then return now end
  local used, first = F.windowUsed(state, window)
  local excess, logged = used + units - window.count, used - pending
  if excess <= 0 then return now end
  if excess > logged then return F.firstPlace(state, huge) + rule.maxHold + window.per end
  return F.instant(log, F.find(log, 8, log.total - logged + excess - 1, first)) + window.per
end
`;
