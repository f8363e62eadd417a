import { LEASE_MEMORY } from "./constants.js";

/**
 * Takes, renews, gives back or looks at a lease, in Lua: `shared/lease.ts`. The reply is the time, whether the asker holds it, its token, the time
 * left, and who holds it.
 *
 * The value begins with `PL`, a version and `l`; then in MessagePack until when it counts, until when it is held, its length, its token, holder and label.
 */
export const LEASE_LUA = String.raw`
local act, ttl, epoch = ARGV[1], ARGV[2] + 0, ARGV[3] + 0
local holder, label = ARGV[4], ARGV[5]
local value = redis.pcall("GET", KEYS[1])
if type(value) == "table" then
  return string.find(value.err, "WRONGTYPE", 1, true) and redis.error_reply("POLITELYFOREIGN 1") or value
end
local keep, till, length, token, owner, name = 0, 0, 0, 0, "", ""
if value then
  local version = string.sub(value, 1, 2) == "PL" and string.byte(value, 3)
  if version and version > 1 then return redis.error_reply("POLITELYNEWER 1 " .. version) end
  local isRead = string.sub(value, 1, 4) == "PL\1l"
  if isRead then isRead, keep, till, length, token, owner, name = pcall(cmsgpack.unpack, string.sub(value, 5)) end
  if not (isRead and type(name) == "string") then return redis.error_reply("POLITELYFOREIGN 1") end
  if keep <= now then till, length, token, owner, name = 0, 0, 0, "", "" end
end
local function write(kept)
  local text = cmsgpack.pack(now + kept, till, length, token, owner, name)
  redis.call("SET", KEYS[1], "PL\1l" .. text, "PX", math.ceil(kept / 1000))
end
-- A clock that was set back must not make a lease longer than it ever was.
local isMoved = till - now > length
if isMoved then till = now + length end
local isLive = till > now
local isOwn = isLive and owner == holder
if act == "look" or (act ~= "take" and not isOwn) or (act == "take" and isLive and not isOwn) then
  if isMoved and act ~= "look" then write(length + ${LEASE_MEMORY}) end
  if not isLive then return { now, 0, 0, 0, "" } end
  return { now, isOwn and 1 or 0, token, till - now, name }
end
if act == "release" then
  till = now
  write(${LEASE_MEMORY})
  return { now, 0, 0, 0, "" }
end
if not isOwn then token = math.max(token + 1, math.floor(epoch)) end
till, length, owner, name = now + ttl, ttl, holder, label
write(ttl + ${LEASE_MEMORY})
return { now, 1, token, ttl, label }
`;
