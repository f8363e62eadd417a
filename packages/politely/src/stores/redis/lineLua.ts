import { POLL_MOST, RUNS, SENIOR, UNCLAIMED } from "./constants.js";

/**
 * Who goes before an asker in the lines of its keys, in Lua: `shared/line.ts`. It is part of a take, whose variables it reads.
 *
 * Mostly nobody waits: the functions are made by `hasLine` when somebody does, after each start anew, since the asker is then another.
 */
export const LINE_LUA = `
local aheadIn, claimsIn, isUnclaimed

-- Since when the asker waits: not since later than now.
local function waitsSince()
  return joined == 0 and time or min(joined, time)
end

local function openLines()
  local since = waitsSince()

  -- Of two who wait since one instant, one is before the other.
  local function isBefore(other)
    return other[3] < since or (other[3] == since and (joined == 0 or other[1] < ticket))
  end

  -- Whether it is about to come. Who runs already, without a place, counts as that at any time, and so does who has its keys kept.
  local function isDue(other)
    return (other[2] <= time + ${POLL_MOST} or other[3] == ${RUNS} or other[7] == 1) and other[2] + ${UNCLAIMED} > time
  end

  -- Whether it wants more than the asker, and could no longer have it at its turn if that started now.
  local function isPutOff(other, state, key)
    local rate, window = other[4] or 1, other[5] or 1
    if (rate <= key.rate and window <= key.window) or other[2] + ${UNCLAIMED} <= time then return false end
    return not F.isSavedUp(state, key.own, rate + key.rate, window + key.window, time, max(time, other[2]))
  end

  -- Adds up those in the line of a key who go first.
  local function together(line, isAhead)
    local starts, rate, window, quota = 0, 0, 0, 0
    for index = 1, #line do
      local other = line[index]
      if isAhead(other) then
        starts, rate = starts + 1, rate + (other[4] or 1)
        window, quota = window + (other[5] or 1), quota + (other[6] or 1)
      end
    end
    return starts, rate, window, quota
  end

  -- Those who came before the asker and may still take their turn.
  function aheadIn(state, key)
    return together(state.line, function(other)
      if not isBefore(other) or other[2] + ${UNCLAIMED} <= time then return false end
      return other[7] ~= 2 or isDue(other) or isPutOff(other, state, key)
    end)
  end

  -- Those of them whom the asker lets go first at its own turn: who waits for much longer and is about to come, or saves up and would
  -- have to begin anew.
  function claimsIn(state, key)
    return together(state.line, function(other)
      if other[3] <= since - ${SENIOR} and isDue(other) then return true end
      return isBefore(other) and isPutOff(other, state, key)
    end)
  end

  function isUnclaimed()
    for index = 1, keyCount do
      local state = states[index]
      for at = 1, #state.line do
        local other = state.line[at]
        if isDue(other) or (isBefore(other) and isPutOff(other, state, keys[index])) then return false end
      end
    end
    return true
  end
end

local function hasLine()
  for index = 1, keyCount do
    if #states[index].line > 0 then
      openLines()
      return true
    end
  end
  return false
end
`;
