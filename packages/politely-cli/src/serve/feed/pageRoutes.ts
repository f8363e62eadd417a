import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import type { FastifyInstance } from "fastify";

/** Where the page is. */
export interface PageRoutesOptions {
  /** The folder that Vite built, with a slash at the end. Default `dist/page/` of this package. */
  readonly folder?: URL;
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'none'",
].join("; ");

const SAFE = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const UNBUILT = "The dashboard is not built. Run `npm run build` and start the service again.\n";

/**
 * Serves the dashboard at `/` and its files under `/assets/`, without asking for a token: there is no data in them.
 *
 * The files are read once, now. Names of assets carry a hash of their content, so browsers keep them for good. Where the page was not
 * built, `/` answers 503 with a sentence that says so.
 */
export function pageRoutes(app: FastifyInstance, options: PageRoutesOptions = {}): void {
  const folder = options.folder ?? new URL("../../../dist/page/", import.meta.url);
  const index = new URL("index.html", folder);
  const isBuilt = existsSync(index);
  const html = isBuilt ? readFileSync(index) : UNBUILT;
  app.get("/", { exposeHeadRoute: true }, async (_, reply) =>
    reply
      .code(isBuilt ? 200 : 503)
      .headers({ ...SAFE, "cache-control": "no-cache" })
      .type(isBuilt ? "text/html; charset=utf-8" : "text/plain; charset=utf-8")
      .send(html),
  );
  if (!isBuilt) return;
  const assets = new URL("assets/", folder);
  for (const name of readdirSync(assets)) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const content = readFileSync(new URL(name, assets));
    app.get(`/assets/${name}`, { exposeHeadRoute: true }, async (_, reply) =>
      reply
        .headers({ ...SAFE, "cache-control": "public, max-age=31536000, immutable" })
        .type(type)
        .send(content),
    );
  }
}
