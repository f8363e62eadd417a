/** Makes a key from a URL. */
export type Grouping = (url: URL) => string;

/** Groupings that need more than the root entry has, by the name a policy uses. */
const groupings = new Map<string, Grouping>();

/** Brings in a grouping under a name. The same name again replaces it, for policies made from then on. */
export function registerGrouping(name: string, grouping: Grouping): void {
  groupings.set(name, grouping);
}

/** The grouping of that name; undefined until somebody has brought it in. */
export function findGrouping(name: string): Grouping | undefined {
  return groupings.get(name);
}
