import type { ParsedFile } from "../policy/inspectPolicy.js";

/** The fields of a file of per-domain limits. */
export const domainsFileFields = ["version", "default_config", "domains"] as const;

/** Tells a file of per-domain limits (`version`, `default_config`, `domains`), which `loadPolicy` reads too, from a policy. */
export function isDomainsFile({ value }: ParsedFile): boolean {
  if (typeof value !== "object" || value === null) return false;
  return domainsFileFields.some((name) => Object.hasOwn(value, name)) && !Object.hasOwn(value, "hosts");
}

/** Turns a path of the policy into the one of the file it was read from. They differ for a file of per-domain limits only. */
export function pathInFile(file: ParsedFile, path: string): string {
  if (!isDomainsFile(file)) return path;
  return path
    .replace(/^hosts(?=\[)/, "domains")
    .replace(/^default(?=$|\.)/, "default_config")
    .replace(/\.burst$/, ".burst_capacity")
    .replace(/\.rate$/, ".requests_per_second");
}
