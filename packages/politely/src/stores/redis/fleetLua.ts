import { MEMBER_US, MEMORY_US } from "../operations.js";

/** What only a fleet has, in Lua: replies that are given twice, processes, places with an owner, and the line. See `decide.ts`. */
export const FLEET_LUA = `
-- Tells askers of other processes that it is their turn. Where that is not allowed they look again by themselves.
function F.publish(wake, own)
  for _, asker in ipairs(wake) do
    local process = F.processOf(asker)
    if process ~= own then redis.pcall("PUBLISH", op.channel .. process, asker) end
  end
end
function F.processOf(name) return sub(name, 1, (string.find(name, ".", 1, true) or #name) - 1) end
-- The reply of before to an operation that comes again. That to the newest asker lies with the key, older ones apart.
function F.remembered(state)
  local number, heard, moved, reply = state.number, state.heard, state.moved, state.reply
  if state.asker ~= op.asker then
    local text = call("GET", F.part(state, "a" .. op.asker))
    if not text then return nil end
    number, heard, moved, reply = cmsgpack.unpack(text)
    heard, moved = heard + state.shift, moved + state.shift
  end
  return number >= op.number and { now, heard - now, moved, cmsgpack.unpack(reply) }
end
function F.remember(state, reply)
  local left = ceil((${MEMORY_US} - max(0, now - state.heard)) / 1000)
  if state.asker ~= op.asker and state.asker ~= "" and left > 0 then
    local text = cmsgpack.pack(state.number, state.heard - state.shift, state.moved - state.shift, state.reply)
    write("SET", F.part(state, "a" .. state.asker), text, "PX", left)
  end
  state.asker, state.number, state.heard, state.moved, state.reply = op.asker, op.number, now, 0, cmsgpack.pack(reply)
end
-- Carries an operation out, if it counts once only the first time. A reply has the time, that from which its instants count, how far the clock was set back since.
function F.reply(act, isOnce)
  local known = isOnce and F.remembered(states[1])
  local reply = known or { now, 0, 0, act() }
  if isOnce and not known then F.remember(states[1], reply[4]) end
  if not isLook then F.close() end
  return reply
end
function F.see(state, process)
  local name = F.part(state, "m")
  local score = state.members > 0 and call("ZSCORE", name, process)
  if score and score + state.shift + 250000 > now then return end
  state.hasGrown = state.hasGrown or state.members == 0
  state.members = state.members + call("ZADD", name, now - state.shift, process)
  state.members = state.members - call("ZREMRANGEBYSCORE", name, "-inf", now - state.shift - ${MEMBER_US})
  if state.members > 10000 then state.members = state.members - call("ZREMRANGEBYRANK", name, 0, state.members - 10001) end
end
`;

/** Places and lines, in Lua: most keys have neither. */
export const QUEUE_LUA = `
function F.placeOf(state, id)
  local text = call("HGET", F.part(state, "p"), id)
  if not text then return nil end
  local started, units, pending, maxHold = cmsgpack.unpack(text)
  return { id = id, startedUs = started + state.shift, units = units, pendingUnits = pending, maxHoldUs = maxHold }
end
-- All places, the oldest first, or as many as are wanted.
function F.placesOf(state, count)
  local list = {}
  for _, id in ipairs(state.rest.places and call("ZRANGE", F.part(state, "o"), 0, isLook and -1 or (count or 0) - 1) or {}) do
    -- Who only looks finds those still there that it has freed.
    if not (state.freed and state.freed[id]) then list[#list + 1] = F.placeOf(state, id) end
  end
  return list
end
function F.putPlace(state, place)
  local text = cmsgpack.pack(place.startedUs - state.shift, place.units, place.pendingUnits, place.maxHoldUs)
  write("HSET", F.part(state, "p"), place.id, text)
end
-- A place is free again when it was held for too long, or its process has not named it until then.
function F.keepAlive(state, place, till)
  till = min(till, place.startedUs + place.maxHoldUs)
  state.rest.places.lapse = min(state.rest.places.lapse, till)
  write("ZADD", F.part(state, "l"), till - state.shift, place.id)
end
function F.takePlace(state, place, till)
  local places = state.rest.places or { count = 0, pending = 0, serial = 0, lapse = huge }
  state.rest.places = places
  if places.count == 0 then places.first, state.hasGrown = place.startedUs, true end
  places.count, places.pending, places.serial = places.count + 1, places.pending + place.pendingUnits, places.serial + 1
  state.keep = max(state.keep, place.startedUs + place.maxHoldUs)
  F.putPlace(state, place)
  write("ZADD", F.part(state, "o"), places.serial, place.id)
  F.keepAlive(state, place, till)
end
-- Frees a place. Where things count from the answer they begin at "at", with these units; without any it was never sent.
function F.free(state, rule, place, at, units)
  local places, pending = state.rest.places, place.pendingUnits
  write("HDEL", F.part(state, "p"), place.id)
  write("ZREM", F.part(state, "o"), place.id)
  write("ZREM", F.part(state, "l"), place.id)
  state.freed = state.freed or {}
  state.freed[place.id] = true
  places.count, places.pending = places.count - 1, places.pending - pending
  if place.startedUs == places.first then
    local first = F.placesOf(state, 1)[1]
    places.first = first and first.startedUs
  end
  if units and (rule.fromAnswer or pending > 0) then F.countAnswer(state, rule, pending > 0 and units or 0, at) end
end
function F.lapse(state, rule)
  local places, name = state.rest.places, F.part(state, "l")
  if not places or places.lapse > now then return end
  local late = call("ZRANGEBYSCORE", name, "-inf", now - state.shift, "WITHSCORES")
  for at = 1, #late, 2 do
    local place = F.placeOf(state, late[at])
    F.free(state, rule, place, max(late[at + 1] + state.shift, place.startedUs), place.pendingUnits)
  end
  local following = call("ZRANGE", name, 0, 0, "WITHSCORES")[2]
  places.lapse = following and following + state.shift or huge
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
  return since + state.shift, turn + state.shift
end
-- Those who did not come at their turn are out of the line.
function F.dropLate(state)
  for _, asker in ipairs(call("ZRANGEBYSCORE", F.part(state, "t"), "-inf", now - state.shift - 1000000)) do F.leave(state, asker) end
end
function F.firstInLine(state, wake)
  if state.line > 0 then F.dropLate(state) end
  if state.line > 0 then wake[#wake + 1] = call("ZRANGE", F.part(state, "w"), 0, 0)[1] end
end
-- Those in line who came before, by rank. Where places are waited for only those who are about to look; and where costs differ each is looked at.
function F.ahead(state, rule, since)
  local name, till = F.part(state, "w"), since == huge and "+inf" or since - state.shift - 1
  local count = since == huge and state.line or call("ZCOUNT", name, "-inf", till)
  if count == 0 then return NOBODY end
  if state.costs == 0 and not rule.places then return { requests = count, rate = count, window = count, quota = count } end
  local soon, ahead = rule.places and {}, { requests = 0, rate = 0, window = 0, quota = 0 }
  for _, asker in ipairs(soon and call("ZRANGEBYSCORE", F.part(state, "t"), "-inf", now - state.shift + 250000) or {}) do
    soon[asker] = true
  end
  for _, asker in ipairs(call("ZRANGEBYSCORE", name, "-inf", till)) do
    if not soon or soon[asker] then
      local cost, rate, window, quota = state.costs > 0 and call("HGET", F.part(state, "c"), asker), 1, 1, 1
      if cost then rate, window, quota = cmsgpack.unpack(cost) end
      ahead.requests, ahead.rate = ahead.requests + 1, ahead.rate + rate
      ahead.window, ahead.quota = ahead.window + window, ahead.quota + quota
    end
  end
  return ahead.requests > 0 and ahead or NOBODY
end
`;
