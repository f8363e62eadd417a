import "./shareLimiter.js";

export type { ThreadOptions } from "./stores/threads.js";
export { threadMemory, threadStore } from "./stores/threads.js";
