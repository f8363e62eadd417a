export type { InterceptorOptions, PoliteDispatch } from "./politeInterceptor.js";
export { politeInterceptor } from "./politeInterceptor.js";
