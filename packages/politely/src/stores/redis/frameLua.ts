import { BEHIND_MOST, MINUTE } from "./constants.js";

/**
 * The frame of every operation on limits, in Lua: `shared/decide.ts`. `F.begin` reads the states and the time; `F.finish` writes them.
 *
 * What an asker was last answered is in a key of its own, which begins with `PM`, a version, a letter for its form, when Redis removes it, and the
 * sequence; then the reply: in MessagePack (`g`), or three doubles for that of the short way in `takeLua.ts` (`h`).
 */
export const FRAME_LUA = String.raw`
local memoKey, memo, memoEdge = nil, false, 0

-- The states of so many keys and the time for all of them, which never goes back; or nothing and what to reply.
function F.open(count)
  local states, time = {}, now
  for index = 1, count do
    local state, problem = F.read(index)
    if not state then return nil, problem end
    if state.seen - now > ${BEHIND_MOST} then F.moveBack(state, state.seen - now) end
    time = max(time, state.seen)
    states[index] = state
  end
  return states, time
end

function F.writeAll(states)
  for index = 1, #states do F.write(index, states[index]) end
end

-- Opens the states on behalf of an asker. What it has asked before is answered as it was then.
function F.begin(count, sequence)
  local states, time = F.open(count)
  if not states then return nil, time end
  for index = 1, count do states[index].seen = time end
  memoKey = KEYS[count + 1]
  memo = memoKey and redis.pcall("GET", memoKey)
  if not memo then return states, time end
  if type(memo) ~= "string" and not string.find(memo.err, "WRONGTYPE", 1, true) then return nil, memo end
  if type(memo) ~= "string" or #memo < 20 or sub(memo, 1, 3) ~= "PM\1" then
    return nil, redis.error_reply("POLITELYFOREIGN 0")
  end
  local remembered
  memoEdge, remembered = struct.unpack("<dd", memo, 5)
  if remembered < sequence then return states, time end
  F.writeAll(states)
  -- What comes even later gets the time, since nobody waits for it any more.
  if remembered > sequence then return nil, { time } end
  if sub(memo, 4, 4) ~= "h" then return nil, cmsgpack.unpack(sub(memo, 21)) end
  local at, units, last = struct.unpack("<ddd", memo, 21)
  return nil, { at, 0, -1, 0, 1, at, at, units, last }
end

function F.remember(sequence, form, body)
  local needed = now + ${MINUTE}
  local head = struct.pack("<dd", F.edgeFor(memoEdge, needed), sequence)
  F.put(memoKey, "PM\1" .. form .. head .. body, memoEdge, needed)
end

-- Writes everything, and the reply that is to be remembered.
function F.finish(states, time, sequence, reply)
  if memoKey then states[1].memo = time end
  F.writeAll(states)
  if memoKey then F.remember(sequence, "g", cmsgpack.pack(reply)) end
  return reply
end
`;
