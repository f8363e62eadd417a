import { PLACE_LEAST_US } from "../operations.js";

/** Grants starts, in Lua: `takeStarts` of `decide.ts`. */
export const TAKE_LUA = `
F.open()
local keys, asker = op.keys, op.asker
-- How many starts fit in one instant. Where requests count and not units, one at a time.
local function together(at, most, aheads)
  -- What is never there at once is not granted for one instant, though it would be there by then.
  local room = most
  for index, state in ipairs(states) do
    local rule, rest, cost = keys[index].rule, state.rest, keys[index].cost
    if most == 1 or rule.gap or state.slow or rest.places or rule.fromAnswer or rule.places or rest.holds then return 1 end
    if rule.count then room = min(room, floor(rule.burst / cost.rate)) end
    for _, window in ipairs(rule.windows) do room = min(room, floor(window.count / cost.window)) end
  end
  local function fits(count)
    for index, state in ipairs(states) do
      if F.ready(state, keys[index].rule, keys[index].cost, count, aheads[index]) > at then return false end
    end
    return true
  end
  if room > 1 and fits(room) then return room end
  local least, over = 1, room
  while over - least > 1 do
    local middle = floor((least + over) / 2)
    if fits(middle) then least = middle else over = middle end
  end
  return least
end
local function grant(from, count, at)
  local first, id = states[1], asker .. "#" .. string.format("%.0f", op.number) .. "#" .. from
  local token = max(first.token + 1, at)
  local reply = { at - now, count, token - at }
  first.token = token + count - 1
  for index, state in ipairs(states) do
    local key, rest = keys[index], state.rest
    local rule, before = key.rule, #reply
    reply[before + 1], reply[before + 2] = state.last > -huge and at - state.last, state.units
    reply[before + 3] = F.count(state, rule, key.cost, count, at)
    -- Where anybody has to know starts in flight, all of them have a place.
    if rule.fromAnswer or rule.places or rest.places then
      local units = key.cost.window * count
      local pending = rule.fromAnswer and units or 0
      local place = { id = id, startedUs = at, units = units, pendingUnits = pending, maxHoldUs = rule.maxHold }
      F.takePlace(state, place, now + max(${PLACE_LEAST_US}, rule.ttl))
    end
    state.starts = state.starts + count
    local holds = rest.holds
    local incident = holds and holds.incident
    if incident and incident.probe ~= "done" then
      local isProbe = incident.probe == "due"
      holds.probe = isProbe and id or nil
      incident.probe, incident.probeAt = isProbe and "out" or "done", at
    end
  end
  return reply
end
-- When to look whether an answer has come: the first in line as places are likely to be free, the others one hold later each, or a little later in its stead.
local function lookAgainAt(state, rule, rank)
  local likely, age = state.held == 0 and 250000 or state.held, now - F.firstPlace(state, now)
  local first = min(max(likely - age, ceil(age / 8), 10000), op.isTold and 30000000 or 1000000)
  if rank == 0 then return now + first end
  local turn = first + ceil(rank * likely / (rule.places or max(1, state.rest.places and state.rest.places.count or 1)))
  local instead = max(first, likely - age) + rank * 1250000
  return now + (rank <= 3 and min(turn, instead) or turn)
end
-- Finds what stops an asker and when its turn is, and lets it stand in line there.
local function standInLine(since)
  local told, at, latest, isAwaited = {}, 1, -huge, false
  for index, state in ipairs(states) do
    local key, from = keys[index], #told
    local ready, list = F.ready(state, key.rule, key.cost, 1, NOBODY, told, index), told
    local ahead = state.line > 0 and F.ahead(state, key.rule, since) or NOBODY
    if ahead ~= NOBODY then
      from, list = 0, {}
      ready = F.ready(state, key.rule, key.cost, 1, ahead, list, index)
    end
    if ready > latest then
      local most = now
      at, latest, isAwaited = index, ready, false
      for which = from + 1, #list do
        local one = list[which]
        local till = one.awaited or one.at
        if till >= most then most, isAwaited = till, one.awaited or one.at == huge end
      end
    end
  end
  local stop, known = nil, now
  for _, one in ipairs(told) do
    if not stop or (one.awaited or one.at) > (stop.awaited or stop.at) then stop = one end
    if not one.awaited and one.at < huge then known = max(known, one.at) end
  end
  stop = stop or { index = at - 1, limit = "queue", at = latest }
  local state, key = states[at], keys[at]
  local line = F.part(state, "w")
  if isAwaited then
    local rank = since == huge and state.line or state.line > 0 and call("ZCOUNT", line, "-inf", since - state.shift - 1) or 0
    latest = max(known, lookAgainAt(state, key.rule, rank))
  end
  -- Behind somebody whose turn has come and who does not come it is enough to look now and then.
  local turn = min(max(latest, now + (#told == 0 and 10000 or 1)), now + 110000000)
  if op.doesWait and state.line < 10000 then
    local last, cost = state.line > 0 and since == huge and call("ZREVRANGE", line, 0, 0, "WITHSCORES")[2], key.cost
    -- No two have come at the same instant.
    local stands = since < huge and since or last and max(now, last + state.shift + 1) or now
    state.hasGrown = state.hasGrown or state.line == 0
    call("ZADD", line, stands - state.shift, asker)
    call("ZADD", F.part(state, "t"), turn - state.shift, asker)
    if cost.rate ~= 1 or cost.window ~= 1 or cost.quota ~= 1 then
      state.hasGrown = state.hasGrown or state.costs == 0
      state.costs = state.costs + call("HSET", F.part(state, "c"), asker, cmsgpack.pack(cost.rate, cost.window, cost.quota))
    end
    state.line = state.line + 1
  end
  return {
    stop.index, stop.limit, stop.at < huge and stop.at - now, stop.awaited and stop.awaited - now or false,
    stop.because or false, stop.which or 0, turn - now,
  }
end
return F.reply(function()
  local since, granted, grants, members, flags = huge, 0, {}, 0, 0
  -- Whose turn has come takes the next start, whoever else is late.
  local isDue = false
  for index, state in ipairs(states) do
    if state.line > 0 then
      local stood, turn = F.leave(state, asker)
      since, isDue = min(since, stood), isDue or turn <= now + op.horizonUs
      F.dropLate(state)
    end
    F.prepare(state, keys[index].rule, keys[index].slowUs)
    F.see(state, F.processOf(asker))
  end
  while granted < op.count do
    local ready, aheads = now, {}
    for index, state in ipairs(states) do
      aheads[index] = not isDue and state.line > 0 and F.ahead(state, keys[index].rule, since) or NOBODY
      ready = max(ready, F.ready(state, keys[index].rule, keys[index].cost, 1, aheads[index]))
    end
    local at = ceil(ready / op.grainUs) * op.grainUs
    if at > now + op.horizonUs then break end
    local count = together(at, op.count - granted, aheads)
    grants[#grants + 1] = grant(granted, count, at)
    granted = granted + count
    -- It had its turn.
    since, isDue = huge, false
  end
  for index, state in ipairs(states) do
    F.keep(state, keys[index].rule)
    members = max(members, state.members)
    if state.rest.holds and state.rest.holds.incident then flags = flags % 2 == 0 and flags + 1 or flags end
    if state.rest.places then flags = flags < 2 and flags + 2 or flags end
  end
  return { members, flags, grants, granted < op.count and standInLine(since) }
end, true)
`;
