import { MEMBER_US, PLACE_LEAST_US } from "../operations.js";

/** What only a fleet has, in Lua: processes, places with an owner, and the line. See `decide.ts`. Most keys have neither places nor a line. */
export const FLEET_LUA = `
local INSTANTS = {
  rest = { "answered", "paused" }, incident = { "till", "began", "probeAt" }, headers = { "hold", "till", "started" },
  places = { "first", "lapse" }, cut = { "at" }, returned = { "previous" },
}
-- Turns instants into distances from another one, and back.
function F.turn(rest, base)
  for name, fields in pairs(INSTANTS) do
    local group = name == "rest" and rest or rest[name]
    for _, field in ipairs(group and fields or {}) do group[field] = group[field] and base - group[field] end
  end
end
-- All places, the oldest first, or as many as are wanted.
function F.placesOf(state, count)
  local list = {}
  -- Who only looks finds those still there that it has freed.
  local last = write == call and count or 0
  for _, id in ipairs(state.rest.places and call("ZRANGE", F.part(state, "o"), 0, last - 1) or {}) do
    list[#list + 1] = not (state.freed and state.freed[id]) and F.placeOf(state, id) or nil
  end
  return list
end
function F.placeOf(state, id)
  local text = call("HGET", F.part(state, "p"), id)
  if not text then return nil end
  local started, units, pending, maxHold, alive = cmsgpack.unpack(text)
  return {
    id = id, startedUs = started + state.origin, units = units, pendingUnits = pending, maxHoldUs = maxHold, aliveUs = alive + state.origin,
  }
end
-- A place is free again when it was held for too long, or its process has not named it until then.
function F.putPlace(state, place)
  local places = state.rest.places
  places.lapse = min(places.lapse, place.aliveUs, place.startedUs + place.maxHoldUs)
  local started, alive = place.startedUs - state.origin, place.aliveUs - state.origin
  write("HSET", F.part(state, "p"), place.id, cmsgpack.pack(started, place.units, place.pendingUnits, place.maxHoldUs, alive))
end
function F.takePlace(state, place)
  local places = state.rest.places or { count = 0, pending = 0, serial = 0, lapse = huge }
  state.rest.places = places
  if places.count == 0 then places.first, state.isGrown = place.startedUs, true end
  places.count, places.pending, places.serial = places.count + 1, places.pending + place.pendingUnits, places.serial + 1
  state.keep = max(state.keep, place.startedUs + place.maxHoldUs)
  write("ZADD", F.part(state, "o"), places.serial, place.id)
  F.putPlace(state, place)
end
function F.holdPlace(state, rule, id, units, at)
  local pending, alive = rule.fromAnswer and units or 0, now + max(${PLACE_LEAST_US}, rule.ttl)
  F.takePlace(state, { id = id, startedUs = at, units = units, pendingUnits = pending, maxHoldUs = rule.maxHold, aliveUs = alive })
end
-- Frees a place. Where things count from the answer they begin at "at", with these units; without any it was never sent.
function F.free(state, rule, place, at, units)
  local places, freed = state.rest.places, state.freed or {}
  write("HDEL", F.part(state, "p"), place.id)
  write("ZREM", F.part(state, "o"), place.id)
  if op.kind == "look" then state.freed, freed[place.id] = freed, true end
  places.count, places.pending = places.count - 1, places.pending - place.pendingUnits
  if place.startedUs == places.first then
    local first = F.placesOf(state, 1)[1]
    places.first = first and first.startedUs
  end
  if units and (rule.fromAnswer or place.pendingUnits > 0) then F.countAnswer(state, rule, place.pendingUnits > 0 and units or 0, at) end
end
function F.lapse(state, rule)
  local places = state.rest.places
  if not places or places.lapse > now then return end
  places.lapse = huge
  for _, place in ipairs(F.placesOf(state)) do
    local till = min(place.startedUs + place.maxHoldUs, place.aliveUs)
    places.lapse = till > now and min(places.lapse, till) or places.lapse
    if till <= now then F.free(state, rule, place, max(till, place.startedUs), place.pendingUnits) end
  end
end
-- Says since when an asker stood in line that does no longer, and when its turn was.
function F.leave(state, asker)
  local since = state.line > 0 and call("ZSCORE", F.part(state, "w"), asker)
  if not since then return huge, huge end
  local turn = call("ZSCORE", F.part(state, "t"), asker)
  state.line = state.line - 1
  write("ZREM", F.part(state, "w"), asker)
  write("ZREM", F.part(state, "t"), asker)
  if state.costs > 0 then state.costs = state.costs - (write("HDEL", F.part(state, "c"), asker) or 0) end
  return since + state.origin, turn + state.origin
end
-- Those who did not come at their turn are out of the line.
function F.dropLate(state)
  local late = state.line > 0 and call("ZRANGEBYSCORE", F.part(state, "t"), "-inf", now - state.origin - 1000000) or {}
  for _, asker in ipairs(late) do F.leave(state, asker) end
end
-- The one whose turn it is now, since something was given back, is to look.
function F.firstInLine(state)
  F.dropLate(state)
  if state.line > 0 then wake[#wake + 1] = call("ZRANGE", F.part(state, "w"), 0, 0)[1] end
end
-- How many in line came before.
function F.rank(state, since)
  return since == huge and state.line or state.line > 0 and call("ZCOUNT", F.part(state, "w"), "-inf", since - state.origin - 1) or 0
end
-- Those in line who came before. Where places are waited for only those who are about to look; and where costs differ each is looked at.
function F.ahead(state, rule, since)
  local count = F.rank(state, since)
  if count == 0 then return NOBODY end
  if state.costs == 0 and not rule.places then return { requests = count, rate = count, window = count, quota = count } end
  local soon, ahead = rule.places and {}, { requests = 0, rate = 0, window = 0, quota = 0 }
  for _, asker in ipairs(soon and call("ZRANGEBYSCORE", F.part(state, "t"), "-inf", now - state.origin + 250000) or {}) do soon[asker] = true end
  for _, asker in ipairs(call("ZRANGE", F.part(state, "w"), 0, count - 1)) do
    if not soon or soon[asker] then
      local cost, rate, window, quota = state.costs > 0 and call("HGET", F.part(state, "c"), asker), 1, 1, 1
      if cost then rate, window, quota = cmsgpack.unpack(cost) end
      ahead.requests, ahead.rate = ahead.requests + 1, ahead.rate + rate
      ahead.window, ahead.quota = ahead.window + window, ahead.quota + quota
    end
  end
  return ahead.requests > 0 and ahead or NOBODY
end
-- Tells askers of other processes that it is their turn. Where that is not allowed they look again by themselves.
function F.publish()
  for _, asker in ipairs(wake) do
    local process = F.processOf(asker)
    if process ~= op.process then redis.pcall("PUBLISH", asked.channel .. process, asker) end
  end
end
`;

/** The processes that use a key, in Lua: `see` of `decide.ts`. */
export const MEMBERS_LUA = `
function F.processOf(name) return sub(name, 1, (string.find(name, ".", 1, true) or #name) - 1) end
function F.see(state, process)
  if state.sight == process then return end
  local name = F.part(state, "m")
  state.sight = process
  local score = state.members > 0 and call("ZSCORE", name, process)
  if score and score + state.origin + 250000 > now then return end
  state.isGrown = state.isGrown or state.members == 0
  state.members = state.members + write("ZADD", name, now - state.origin, process)
  state.members = state.members - call("ZREMRANGEBYSCORE", name, "-inf", now - state.origin - ${MEMBER_US})
  if state.members > 10000 then state.members = state.members - call("ZREMRANGEBYRANK", name, 0, state.members - 10001) end
end
`;
