import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { startDynamodb } from "./dynamodb.js";

afterEach(() => vi.unstubAllEnvs());

describe("startDynamodb", () => {
  it("gives the server that is named, and does not end it", async () => {
    vi.stubEnv("DYNAMODB_ENDPOINT", "http://127.0.0.1:9");
    const server = await startDynamodb();
    expect(server.endpoint).toBe("http://127.0.0.1:9");
    await server.stop();
  });

  it("says what to install where java is missing", async () => {
    const folder = mkdtempSync(join(tmpdir(), "politely-path-"));
    symlinkSync("/usr/bin/setpriv", join(folder, "setpriv"));
    vi.stubEnv("DYNAMODB_ENDPOINT", "");
    vi.stubEnv("PATH", folder);
    try {
      await expect(startDynamodb()).rejects.toThrow(/java is not installed.*apt-get install openjdk-17-jre-headless/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
