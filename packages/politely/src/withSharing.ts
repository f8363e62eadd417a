import { shareKeyLimiter, shareLimiter } from "./shareLimiter.js";
import { provideSharing } from "./sharing.js";

provideSharing({ limiter: shareLimiter, keyLimiter: shareKeyLimiter });
