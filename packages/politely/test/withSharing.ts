// Tests import stores from where they are written, and not by their entries, which bring this along.
import "../src/shareLimiter.js";
