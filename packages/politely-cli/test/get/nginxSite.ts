import { join } from "node:path";
import { type LogRecord, type Server, startServer } from "../../../politely/test/servers/server.js";

/** nginx with one host at 127.0.0.2, which writes its access log as nginx does when nobody says how. */
export interface NginxSite {
  readonly server: Server;
  readonly address: string;
  readonly perSecond: number;
  /** In the combined format. */
  readonly accessLog: string;
  /** `count` URLs of it. */
  pages(count: number): string[];
}

/** Starts nginx with `limit_req` at so many requests a second; more are answered 429 and Retry-After 2 s. */
export async function startNginxSite(perSecond: number): Promise<NginxSite> {
  const server = await startServer({
    name: "nginx",
    hostCount: 1,
    retryAfterSec: 2,
    files: ({ port, addresses, controlAddress }) => ({
      page: "polite\n",
      "nginx.conf": `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr error;
events { worker_connections 512; }
http {
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path temp-${kind};`).join("\n  ")}
  default_type text/plain;
  limit_req_status 429;
  limit_req_log_level notice;
  limit_req_zone $server_addr zone=requests:64k rate=${perSecond}r/s;
  log_format record escape=json '{"atSec":$msec,"status":$status,"host":"$server_addr","path":"$request_uri"}';
  access_log access.log record;
  server {
    listen ${controlAddress}:${port};
    location / { return 204; }
  }
  server {
    listen ${addresses[0]}:${port};
    root .;
    access_log access.log record;
    access_log combined.log combined;
    limit_req zone=requests;
    error_page 429 @refused;
    location / { try_files /page =404; }
    location = /robots.txt { try_files /robots.txt =404; }
    location @refused { add_header Retry-After 2 always; return 429 "too many requests\\n"; }
  }
}
`,
    }),
    args: ({ folder }) => ["-p", folder, "-e", "stderr", "-c", "nginx.conf"],
    readLine: (line): LogRecord => {
      const { atSec, ...rest } = JSON.parse(line) as Omit<LogRecord, "atMs" | "userAgent"> & { readonly atSec: number };
      return { atMs: Math.round(atSec * 1_000), userAgent: "", ...rest };
    },
  });
  const [{ address, origin }] = server.hosts;
  return {
    server,
    address,
    perSecond,
    accessLog: join(server.folder, "combined.log"),
    pages: (count) => Array.from({ length: count }, (_, index) => `${origin}/p/${index}.html`),
  };
}
