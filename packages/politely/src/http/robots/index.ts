export type { DailyHours, RequestRate } from "./pace.js";
export type { Robots, RobotsLine } from "./parseRobots.js";
export { parseRobots } from "./parseRobots.js";
export type { RobotsAction, RobotsFetchOutcome } from "./robotsAction.js";
export { robotsAction } from "./robotsAction.js";
