/**
 * Takes, renews, gives back or looks at a lease, in Lua: `decideLease`. The reply is the time, whether the asker holds it, its token, the time
 * left, and who holds it.
 *
 * The value begins with `PL`, a version and `l`; then in MessagePack until when it is held, its length, its token, holder and label.
 */
export const LEASE_LUA = String.raw`
local now = clock[1] * 1000000 + clock[2]
local act, ttl, holder, label = ARGV[1], ARGV[2] + 0, ARGV[3], ARGV[4]
local value = redis.pcall("GET", KEYS[1])
if type(value) == "table" then
  return string.find(value.err, "WRONGTYPE", 1, true) and redis.error_reply("POLITELYFOREIGN 1") or value
end
local till, length, token, owner, name = 0, 0, 0, "", ""
if value then
  local version, isRead = string.sub(value, 1, 2) == "PL" and string.byte(value, 3), string.sub(value, 1, 4) == "PL\2l"
  if version and version ~= 2 then return redis.error_reply("POLITELYVERSION 1 " .. version) end
  if isRead then isRead, till, length, token, owner, name = pcall(cmsgpack.unpack, string.sub(value, 5)) end
  if not (isRead and type(name) == "string") then return redis.error_reply("POLITELYFOREIGN 1") end
end
-- The next token is larger: one more while this one is known, and the time once that is past it.
local function write(kept)
  local left = math.max(kept, token - now) + 3600000000
  redis.call("SET", KEYS[1], "PL\2l" .. cmsgpack.pack(till, length, token, owner, name), "PX", math.ceil(left / 1000))
end
-- A clock that was set back must not make a lease longer than it ever was.
local isMoved = till - now > length
if isMoved then till = now + length end
local isLive = till > now
local isOwn = isLive and owner == holder
if act == "look" or (act ~= "take" and not isOwn) or (act == "take" and isLive and not isOwn) then
  if isMoved and act ~= "look" then write(length) end
  if not isLive then return { now, 0, 0, 0, "" } end
  return { now, isOwn and 1 or 0, token, till - now, name }
end
if act == "release" then
  till = 0
  write(0)
  return { now, 0, 0, 0, "" }
end
if not isOwn then token = math.max(token + 1, now) end
till, length, owner, name = now + ttl, ttl, holder, label
write(ttl)
return { now, 1, token, ttl, label }
`;
