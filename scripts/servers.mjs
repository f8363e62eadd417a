// Makes sure that the servers the tests start are installed: all of them, or those named as arguments. On Debian and
// its relatives what is missing is installed; elsewhere a sentence says what to install by hand.
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** The Debian package of each program. */
const packages = new Map([
  ["nginx", "nginx"],
  ["haproxy", "haproxy"],
  ["setpriv", "util-linux"],
  ["redis-server", "redis-server"],
  // For DynamoDB Local.
  ["java", "openjdk-17-jre-headless"],
  // Brings libfaketime, with which a test sets the clock of one process.
  ["faketime", "faketime"],
  // A terminal to look at, and the list of what runs in it.
  ["tmux", "tmux"],
  ["ps", "procps"],
  // Looks at the service's page, and at its metrics.
  ["chromium", "chromium"],
  ["promtool", "prometheus"],
  // Speak to the service in other languages.
  ["curl", "curl"],
  ["openssl", "openssl"],
  ["python3", "python3"],
  ["ruby", "ruby"],
  ["php", "php-cli"],
  ["go", "golang-go"],
]);

const installWithinMs = 600_000;

/**
 * Installs the packages given as arguments, as root. Debian starts a server once it is installed unless policy-rc.d says
 * no with 101; where there is no such file, one is there for the time of the installation.
 */
const installing = `
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' > "$policy" && chmod 755 "$policy" || exit 1
fi
export DEBIAN_FRONTEND=noninteractive
wait_for_others='-o DPkg::Lock::Timeout=120'
apt-get $wait_for_others -q update && apt-get $wait_for_others -q install -y --no-install-recommends "$@"
`;

process.exit(main(process.argv.slice(2)) ? 0 : 1);

/** @param {readonly string[]} names */
function main(names) {
  const unknown = names.filter((name) => !packages.has(name));
  if (unknown.length > 0) {
    console.error(`Unknown: ${unknown.join(", ")}. Known are ${[...packages.keys()].join(", ")}.`);
    return false;
  }
  const wanted = names.length > 0 ? names : [...packages.keys()];
  const missing = wanted.filter((name) => !isInstalled(name));
  if (missing.length === 0) {
    console.log(`Installed already: ${wanted.join(", ")}.`);
    return true;
  }
  const problem = install(missing);
  if (problem !== undefined) {
    const byHand = missing.map((name) => packages.get(name)).join(" ");
    console.error(`The tests need ${missing.join(", ")}. ${problem} Install by hand: apt-get install ${byHand}`);
    console.error(
      "Without apt-get: the packages of the same names; nginx with limit_req and limit_conn, haproxy 2.4 or later, " +
        "Redis 7 or later, Java 17 or later, Go 1.18 or later.",
    );
  }
  return problem === undefined;
}

/**
 * Installs what is missing. Returns what went wrong, if something did.
 *
 * @param {readonly string[]} missing
 * @returns {string | undefined}
 */
function install(missing) {
  if (!isInstalled("apt-get"))
    return "They can be installed from here with apt-get only, which this machine does not have.";
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && !isInstalled("sudo")) return "Only root can install them, and there is no sudo.";

  const names = missing.map((name) => packages.get(name) ?? name);
  console.log(`Installing with apt-get: ${names.join(", ")}.`);
  const command = ["sh", "-c", installing, "sh", ...names];
  const [program = "sh", ...args] = isRoot ? command : ["sudo", "-n", ...command];
  const result = spawnSync(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
    timeout: installWithinMs,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (result.status !== 0) {
    console.error(`${result.stdout ?? ""}${result.stderr ?? ""}`.trimEnd());
    const end = result.error?.message ?? `exit code ${result.status}`;
    return `Installing did not work (${end}).`;
  }
  const absent = missing.filter((name) => !isInstalled(name));
  return absent.length === 0 ? undefined : `apt-get installed ${names.join(", ")}, but not ${absent.join(", ")}.`;
}

/**
 * Looks along PATH, and where Debian keeps servers, which is on root's PATH only.
 *
 * @param {string} name
 */
function isInstalled(name) {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin", "/sbin"];
  return folders.some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return folder !== "";
    } catch {
      return false;
    }
  });
}
