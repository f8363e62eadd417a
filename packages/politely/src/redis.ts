import "./shareLimiter.js";

export type { IoredisClient, NodeRedisClient, NodeRedisEval } from "./stores/redis/client.js";
export type { RedisOptions } from "./stores/redis.js";
export { redisStore } from "./stores/redis.js";
