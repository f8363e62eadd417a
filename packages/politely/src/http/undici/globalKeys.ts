/** Where undici keeps its global dispatcher: 6 and 7 under the first name, 8 under the second; 7.30 and 8 write both. */
export const GLOBAL_DISPATCHERS: readonly symbol[] = [1, 2].map((version) =>
  Symbol.for(`undici.globalDispatcher.${version}`),
);
