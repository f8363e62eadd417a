export { VirtualClock, type VirtualClockOptions } from "./virtualClock.js";
