/** Grants starts, in Lua: `takeStarts` of `decide.ts`. */
export const TAKE_LUA = `
-- What "count" of a key's starts cost.
local function times(cost, count)
  if count == 1 then return cost end
  return { rate = cost.rate * count, window = cost.window * count, quota = cost.quota * count }
end
-- How many starts fit in one instant. Where requests count and not units, one at a time.
function F.together(at, most, aheads)
  -- What is never there at once is not granted for one instant, though it would be there by then.
  local room = most
  for index, state in ipairs(states) do
    local rule, rest, cost = op.keys[index].rule, state.rest, op.keys[index].cost
    if rule.gap or state.slow or F.isFollowed(state, rule) or rest.incident or rest.headers or rest.paused then return 1 end
    if rule.count then room = min(room, floor(rule.burst / cost.rate)) end
    for _, window in ipairs(rule.windows) do room = min(room, floor(window.count / cost.window)) end
  end
  local function fits(count)
    for index, state in ipairs(states) do
      local key = op.keys[index]
      if F.ready(state, key.rule, times(key.cost, count), aheads[index]) > at then return false end
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
  local first, parts = states[1], {}
  local token = max(first.token + 1, at)
  first.token = token + count - 1
  for index, state in ipairs(states) do
    local rule, cost, incident = op.keys[index].rule, times(op.keys[index].cost, count), state.rest.incident
    local previous, units, isFollowed = state.last > -huge and state.last - now, state.units, F.isFollowed(state, rule)
    parts[index], state.starts = { previous, units, F.count(state, rule, cost, at) }, state.starts + count
    local id = (incident or isFollowed) and op.asker .. "#" .. string.format("%.0f", op.number) .. "#" .. from
    if isFollowed then F.holdPlace(state, rule, id, cost.window, at) end
    if incident and incident.probe ~= "done" then
      local isProbe = incident.probe == "due"
      state.rest.probe = isProbe and id or nil
      incident.probe, incident.probeAt = isProbe and "out" or "done", at
    end
  end
  return { at - now, count, token, parts }
end
function F.take(members, since, isDue)
  local granted, grants, aheads, most, isHeld, isPlaced = 0, {}, {}, op.count, 0, 0
  while granted < most do
    local ready = now
    for index, state in ipairs(states) do
      local key = op.keys[index]
      aheads[index] = not isDue and state.line > 0 and F.ahead(state, key.rule, since) or NOBODY
      ready = max(ready, F.ready(state, key.rule, key.cost, aheads[index]))
    end
    local at = ceil(ready / op.grainUs) * op.grainUs
    if at > now + op.horizonUs then break end
    local count = most - granted > 1 and F.together(at, most - granted, aheads) or 1
    grants[#grants + 1] = grant(granted, count, at)
    granted = granted + count
    -- It had its turn.
    if granted >= (op.inTurn or 1) then since, isDue = huge, false end
  end
  for _, state in ipairs(states) do
    isHeld, isPlaced = state.rest.incident and 1 or isHeld, state.rest.places and 1 or isPlaced
  end
  return { members, isHeld, isPlaced, grants, granted < most and F.standInLine(since) }
end
`;

/** Lets an asker that got less than it wants stand in line, in Lua: `standInLine` of `decide.ts`. */
export const STAND_LUA = `
-- Adds each limit in the way to a list.
local function into(list, index)
  return function(limit, at, awaited, because, which)
    list[#list + 1] = { index = index - 1, limit = limit, at = at, awaited = awaited, because = because, which = which }
  end
end
-- A limit in the way, for the reply. Instants are distances from now; false where there is none.
local function said(one)
  local at, awaited = one.at < huge and one.at - now, one.awaited and one.awaited - now or false
  return { one.index, one.limit, at, awaited, one.because or false, one.which or 0 }
end
-- When to look whether an answer has come: the first in line as places are likely to be free, the others one hold later each, or a little later in its stead.
local function lookAgainAt(state, rule, rank)
  local likely, age, places = state.held == 0 and 250000 or state.held, now - (F.firstPlace(state) or now), state.rest.places
  local first = min(max(likely - age, ceil(age / 8), 10000), op.isTold and 30000000 or 1000000)
  if rank == 0 then return now + first end
  local turn = first + ceil(rank * likely / (rule.places or max(1, places and places.count or 1)))
  return now + (rank <= 3 and min(turn, max(first, likely - age) + rank * 1250000) or turn)
end
local function stand(state, key, since, turn)
  local line, cost = F.part(state, "w"), key.cost
  local last = state.line > 0 and since == huge and call("ZREVRANGE", line, 0, 0, "WITHSCORES")[2]
  -- No two have come at the same instant.
  local stands = since < huge and since or last and max(now, last + state.origin + 1) or now
  state.isGrown = state.isGrown or state.line == 0
  call("ZADD", line, stands - state.origin, op.asker)
  call("ZADD", F.part(state, "t"), turn - state.origin, op.asker)
  if cost ~= ONE then
    state.isGrown = state.isGrown or state.costs == 0
    state.costs = state.costs + call("HSET", F.part(state, "c"), op.asker, cmsgpack.pack(cost.rate, cost.window, cost.quota))
  end
  state.line = state.line + 1
end
-- Finds what stops an asker and when its turn is, and lets it stand in line there.
function F.standInLine(since)
  local told, at, latest, isAwaited, stop, known = {}, 1, -huge, false, nil, now
  for index, state in ipairs(states) do
    local key, list, from, most = op.keys[index], told, #told, now
    local ready = F.ready(state, key.rule, key.cost, NOBODY, into(told, index))
    local ahead = state.line > 0 and F.ahead(state, key.rule, since) or NOBODY
    if ahead ~= NOBODY then
      list, from = {}, 0
      ready = F.ready(state, key.rule, key.cost, ahead, into(list, index))
    end
    if ready > latest then
      at, latest, isAwaited = index, ready, false
      for which = from + 1, #list do
        local till = list[which].awaited or list[which].at
        if till >= most then most, isAwaited = till, list[which].awaited or list[which].at == huge end
      end
    end
  end
  for _, one in ipairs(told) do
    if not stop or (one.awaited or one.at) > (stop.awaited or stop.at) then stop = one end
    if not one.awaited and one.at < huge then known = max(known, one.at) end
  end
  local state, key = states[at], op.keys[at]
  local reply = said(stop or { index = at - 1, limit = "queue", at = latest })
  if isAwaited then latest = max(known, lookAgainAt(state, key.rule, F.rank(state, since))) end
  -- Behind somebody whose turn has come and who does not come it is enough to look now and then.
  local turn = min(max(latest, now + (#told == 0 and 10000 or 1)), now + 110000000)
  if op.doesWait and state.line < 10000 then stand(state, key, since, turn) end
  reply[7] = turn - now
  return reply
end
-- Says how keys stand: "look".
function F.look(members)
  local told, views = {}, {}
  local function from(at) return at > -huge and at < huge and at - now end
  for index, state in ipairs(states) do
    local rule, list, windows, incident, places = op.keys[index].rule, {}, {}, state.rest.incident, state.rest.places
    F.ready(state, rule, op.keys[index].cost, NOBODY, into(list, index))
    for _, one in ipairs(list) do told[#told + 1] = said(one) end
    for which, window in ipairs(rule.windows) do
      local used, first, log = F.windowUsed(state, window)
      local leaves = log and first < log.size and F.entry(log, first) + window.per or -huge
      windows[which] = { used, from(F.windowFree(state, rule, window, 1)), from(leaves) }
    end
    local tokens = rule.count and max(0, rule.burst - ceil(F.owedAt(rule.count, state.owed, state.seen, now) / rule.per)) or 0
    views[index] = {
      state.starts, state.throttled, places and places.count or 0, state.line, tokens, from(state.last),
      from(incident and incident.till or -huge), windows,
    }
  end
  return { members, told, views }
end
`;
