import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";

/** What is not the public internet: private, loopback, link-local, shared (CGNAT), multicast, reserved, for documents, unspecified, and where Azure answers for a machine's host. */
const PRIVATE_4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
] as const;

/** The same, with the ways to write an IPv4 address inside that nobody needs any more (6to4, Teredo, compatible, translated, local NAT64). */
const PRIVATE_6 = [
  "::/96",
  "::ffff:0:0:0/96",
  "64:ff9b:1::/48",
  "100::/64",
  "2001::/32",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
  "5f00::/16",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
  "ff00::/8",
] as const;

const privateAddresses = blockList(PRIVATE_4, PRIVATE_6);
const loopback = blockList(["127.0.0.0/8"], ["::1/128"]);
const unspecified = blockList(["0.0.0.0/32"], ["::/128"]);
/** Where networks without IPv4 reach it: the last 32 bits are the address that counts. */
const translated = blockList([], ["64:ff9b::/96"]);

/** Whether an address is none of the public internet. What is no address at all counts as private. */
export function isPrivateAddress(text: string): boolean {
  const address = plain(text);
  if (isIP(address) === 0) return true;
  return contains(privateAddresses, address);
}

/** Whether an address is this machine's loopback. */
export function isLoopbackAddress(text: string): boolean {
  return contains(loopback, plain(text));
}

/** Whether connecting to an address ends on this machine: loopback, unspecified, or one of its interfaces'. */
export function isOwnAddress(text: string): boolean {
  const address = plain(text);
  if (contains(loopback, address) || contains(unspecified, address)) return true;
  const own = new BlockList();
  for (const each of Object.values(networkInterfaces()).flat()) {
    if (each !== undefined) own.addAddress(plain(each.address), each.family === "IPv4" ? "ipv4" : "ipv6");
  }
  return contains(own, address);
}

/** The address that counts: without a zone, and the IPv4 address of one that only wraps it. */
function plain(text: string): string {
  const [address] = text.split("%", 1);
  if (isIP(address) !== 6) return address;
  const groups = groupsOf(address);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xff_ff;
  if (!isMapped && !translated.check(address, "ipv6")) return address;
  return [groups[6] >> 8, groups[6] & 255, groups[7] >> 8, groups[7] & 255].join(".");
}

/** The eight numbers of an IPv6 address. A URL writes every form in the same way: hexadecimal, at most one gap. */
function groupsOf(address: string): number[] {
  const [head, tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const numbers = (part: string | undefined): number[] =>
    part === undefined || part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const [before, after] = [numbers(head), numbers(tail)];
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function contains(list: BlockList, address: string): boolean {
  const family = isIP(address);
  return family !== 0 && list.check(address, family === 4 ? "ipv4" : "ipv6");
}

function blockList(four: readonly string[], six: readonly string[]): BlockList {
  const list = new BlockList();
  for (const [subnets, family] of [[four, "ipv4"] as const, [six, "ipv6"] as const]) {
    for (const subnet of subnets) {
      const [address, bits] = subnet.split("/");
      list.addSubnet(address, Number(bits), family);
    }
  }
  return list;
}
