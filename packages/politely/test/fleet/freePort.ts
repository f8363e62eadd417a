import { once } from "node:events";
import { createServer } from "node:net";

const fromPort = 10_240;
/** Below the ports that Linux gives to outgoing connections, from 32,768 on. */
const beforePort = 32_000;
const attempts = 50;

/**
 * A port that nobody listens on at this moment, on any address.
 *
 * No outgoing connection ever gets it, so a server that went away can come back to it.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const port = fromPort + Math.floor(Math.random() * (beforePort - fromPort));
    if (await isFree(port)) return port;
  }
  throw new Error(`None of ${attempts} ports from ${fromPort} to ${beforePort} was free; end what listens on them.`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, "0.0.0.0");
  try {
    await once(probe, "listening");
  } catch {
    return false;
  }
  probe.close();
  await once(probe, "close");
  return true;
}
