import { readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, it } from "vitest";
import { closeServer, listenOn } from "../../src/serve/listening.js";
import { Place } from "../get/place.js";

it("opens a Unix socket that was never anybody else's, and leaves the mask of files as it was", async () => {
  using place = new Place();
  const path = join(place.path, "s.sock");
  const server = createServer();
  const mask = process.umask(0);
  try {
    let modeAtFirst = 0;
    server.once("listening", () => {
      modeAtFirst = statSync(path).mode & 0o777;
    });
    await listenOn(server, path);
    expect(modeAtFirst.toString(8)).toBe("600");
    expect(process.umask()).toBe(0);
  } finally {
    process.umask(mask);
    await closeServer(server, 0);
  }
});

it("refuses a path that is too long for a Unix socket, and leaves nothing open and no file", async () => {
  using place = new Place();
  const server = createServer();
  const path = join(place.path, "s".repeat(120));
  try {
    await expect(listenOn(server, path)).rejects.toThrow(/--socket .* bytes.*shorter/);
    expect([server.listening, readdirSync(place.path)]).toEqual([false, []]);
  } finally {
    await closeServer(server, 0);
  }
});
