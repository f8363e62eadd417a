/**
 * What a queue in Redis does, each in one step. `KEYS[1]` is the prefix of the list; all its keys carry the same hash tag.
 *
 * `state` (hash): URL → state as in urlQueue.ts. `wait:KEY` (sorted set): waiting URLs by their place. `keys` (sorted set, all scores 0): keys with waiting
 * URLs. `out:WORKER` (hash): URL → key. `workers` (sorted set): worker → end of its lease in ms. `count:NAME` (hash): key → how many.
 * `place` (hash): URL → place. `failed`, `fetched`, `refused` (hashes): URL → key. `old:NAME` (hash): those of them that are to wait again, until all of them do.
 * `round`: there while a round that somebody asked for has something left.
 */
const SHARED = `
local p = KEYS[1]
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function count(name, key, by)
  if by ~= 0 then redis.call('HINCRBY', p .. 'count:' .. name, key, by) end
end
local function wait(url, key)
  redis.call('HSET', p .. 'state', url, '0')
  redis.call('ZADD', p .. 'wait:' .. key, redis.call('HGET', p .. 'place', url), url)
  redis.call('ZADD', p .. 'keys', 0, key)
  count('waiting', key, 1)
end
local function waitNoMore(url, key)
  redis.call('ZREM', p .. 'wait:' .. key, url)
  count('waiting', key, -1)
  if redis.call('EXISTS', p .. 'wait:' .. key) == 0 then redis.call('ZREM', p .. 'keys', key) end
end
local function isMoving()
  return redis.call('EXISTS', p .. 'old:failed', p .. 'old:fetched', p .. 'old:refused') > 0
end
local function closeRound()
  if redis.call('EXISTS', p .. 'round') == 0 or redis.call('EXISTS', p .. 'keys') == 1 or isMoving() then return end
  for _, worker in ipairs(redis.call('ZRANGE', p .. 'workers', 0, -1)) do
    if redis.call('EXISTS', p .. 'out:' .. worker) == 1 then return end
  end
  redis.call('DEL', p .. 'round')
end
local function leave(worker)
  local held = redis.call('HGETALL', p .. 'out:' .. worker)
  for i = 1, #held, 2 do wait(held[i], held[i + 1]) end
  redis.call('DEL', p .. 'out:' .. worker)
  redis.call('ZREM', p .. 'workers', worker)
  return #held / 2
end
`;

/** The scripts by name. Lists of URLs come as URL, key, URL, key, … */
export const redisScripts = {
  /** ARGV: url, key, … */
  add: `${SHARED}
closeRound()
for i = 1, #ARGV, 2 do
  if redis.call('HSETNX', p .. 'place', ARGV[i], '0') == 1 then
    redis.call('HSET', p .. 'place', ARGV[i], redis.call('INCR', p .. 'last'))
    count('total', ARGV[i + 1], 1)
    wait(ARGV[i], ARGV[i + 1])
  end
end
return 0`,
  /**
   * ARGV: `no`, `yes` or `if-finished`. Puts aside what is to wait again, for `again` to move. Answers 1 when finished URLs are among it, 0 when
   * not, and -1, with nothing done, while what was put aside before is still there.
   */
  begin: `${SHARED}
if isMoving() then return -1 end
closeRound()
local isAgain = ARGV[1] == 'yes' and redis.call('EXISTS', p .. 'round') == 0
if ARGV[1] == 'if-finished' then
  local left = redis.call('EXISTS', p .. 'keys', p .. 'failed')
  for _, worker in ipairs(redis.call('ZRANGE', p .. 'workers', 0, -1)) do
    left = left + redis.call('EXISTS', p .. 'out:' .. worker)
  end
  isAgain = left == 0
end
local function putAside(name)
  if redis.call('EXISTS', p .. name) == 0 then return 0 end
  redis.call('RENAME', p .. name, p .. 'old:' .. name)
  return 1
end
putAside('failed')
if not isAgain then return 0 end
redis.call('SET', p .. 'round', '1')
return math.max(putAside('fetched'), putAside('refused'))`,
  /**
   * ARGV: `failed`, `fetched` or `refused`, cursor. Lets some of those wait again that were put aside, about 1,000. Answers the next cursor: 0 when all
   * were gone through. Nothing is ever added to what was put aside, so one way through finds all of it.
   */
  again: `${SHARED}
local name = ARGV[1]
local scanned = redis.call('HSCAN', p .. 'old:' .. name, ARGV[2], 'COUNT', 1000)
local found = scanned[2]
for i = 1, #found, 2 do
  if redis.call('HDEL', p .. 'old:' .. name, found[i]) == 1 then
    count(name, found[i + 1], -1)
    wait(found[i], found[i + 1])
  end
end
return scanned[1]`,
  /** ARGV: worker, key, count, lease in ms. */
  claim: `${SHARED}
local worker, key = ARGV[1], ARGV[2]
local popped = redis.call('ZPOPMIN', p .. 'wait:' .. key, ARGV[3])
local urls = {}
for i = 1, #popped, 2 do
  local url = popped[i]
  urls[#urls + 1] = url
  redis.call('HSET', p .. 'state', url, '1' .. worker)
  redis.call('HSET', p .. 'out:' .. worker, url, key)
end
count('waiting', key, -#urls)
if redis.call('EXISTS', p .. 'wait:' .. key) == 0 then redis.call('ZREM', p .. 'keys', key) end
if #urls > 0 then redis.call('ZADD', p .. 'workers', now() + ARGV[4], worker) end
return urls`,
  /** ARGV: url, key, outcome, … */
  finish: `${SHARED}
for i = 1, #ARGV, 3 do
  local url, key, outcome = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local was = redis.call('HGET', p .. 'state', url)
  local isOut = was and string.sub(was, 1, 1) == '1'
  if was == '0' or isOut then
    if isOut then redis.call('HDEL', p .. 'out:' .. string.sub(was, 2), url) else waitNoMore(url, key) end
    redis.call('HSET', p .. 'state', url, '2')
    redis.call('HSET', p .. outcome, url, key)
    count(outcome, key, 1)
  end
end
return 0`,
  /** ARGV: worker, lease in ms, 1 to take over from the dead. */
  renew: `${SHARED}
local t = now()
redis.call('ZADD', p .. 'workers', t + ARGV[2], ARGV[1])
local came = 0
if ARGV[3] == '0' then return came end
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', p .. 'workers', '-inf', '(' .. t)) do came = came + leave(worker) end
return came`,
  /** ARGV: worker. */
  leave: `${SHARED}
return leave(ARGV[1])`,
} as const;
