import { expect, it } from "vitest";
import { selfSigned, startOrigin } from "./origin.js";
import { curl, raw, startProxy } from "./place.js";

const certificate = selfSigned();

it("names the site, not itself, in Host, Origin and Referer", async () => {
  await using site = await startOrigin();
  await using place = await startProxy();
  const own = `http://localhost:${place.port}`;
  const send = async (...head: string[]) => {
    const lines = [`GET /${site.url}/x HTTP/1.1`, `Host: localhost:${place.port}`, "Connection: close", ...head];
    await raw(place.port, `${lines.join("\r\n")}\r\n\r\n`);
    const { host, origin, referer } = site.seen.at(-1)?.headers ?? {};
    return { host, origin, referer };
  };
  const host = `127.0.0.1:${site.port}`;
  expect(await send(`Origin: ${own}`, `Referer: ${own}/https://a.example/b?c`)).toEqual({
    host,
    origin: site.url,
    referer: "https://a.example/b?c",
  });
  expect(await send(`Origin: ${site.url}`, `Referer: ${own}/`)).toEqual({ host, origin: site.url, referer: undefined });
  expect(await send("Referer: https://b.example/")).toMatchObject({ referer: "https://b.example/" });
});

it("passes redirects on in its own form, so that curl -L stays inside", async () => {
  await using other = await startOrigin(undefined, certificate);
  await using site = await startOrigin((request, response) => {
    const places: Record<string, string> = { "/a": "b?x=1", "/b?x=1": "/c", "/c": `${other.url}/end` };
    const location = places[request.url ?? ""] ?? "mailto:a@example.com";
    response.writeHead(302, { location, "content-location": "/page" }).end();
  });
  await using place = await startProxy({}, { ca: [certificate.cert] });
  const { stdout } = await curl(["-L", `${place.url}/${site.url}/a`]);
  expect(stdout).toBe("page /end");
  expect(site.seen.map(({ path }) => path)).toEqual(["/a", "/b?x=1", "/c"]);
  const head = await curl(["-i", `${place.url}/${site.url}/a`]);
  expect(head.stdout).toContain(`location: /${site.url}/b?x=1\r\n`);
  expect(head.stdout).toContain(`content-location: /${site.url}/page\r\n`);
  expect((await curl(["-i", `${place.url}/${site.url}/z`])).stdout).toContain("location: mailto:a@example.com\r\n");
  // As http_proxy, nothing is changed.
  expect((await curl(["-i", "-x", place.url, `${site.url}/a`])).stdout).toContain("location: b?x=1\r\n");
});

it("passes a Refresh on in its own form, however it is written", async () => {
  let refresh = "";
  await using site = await startOrigin((_, response) => void response.writeHead(200, { refresh }).end());
  await using place = await startProxy();
  const passedOn = async (value: string): Promise<string | undefined> => {
    refresh = value;
    const { stdout } = await curl(["-i", "-u", "me:mine", `${place.url}/${site.url}/a/b`]);
    return /^refresh: (.*)\r$/m.exec(stdout)?.[1];
  };
  expect(await passedOn("5; url=c?d=1")).toBe(`5; url=/${site.url}/a/c?d=1`);
  expect(await passedOn("0;URL = '/c' and more")).toBe(`0; url=/${site.url}/c`);
  expect(await passedOn('1.5, "https://other.example/x"')).toBe("1.5; url=/-/https://other.example/x");
  expect(await passedOn("7 https://other.example/x")).toBe("7; url=/-/https://other.example/x");
  expect(await passedOn("30")).toBe("30");
  expect(await passedOn("0; url=data:text/plain,x")).toBe("0; url=data:text/plain,x");
});

it("leaves nothing in a cookie that asks for the Secure which is taken out", async () => {
  const cookies = [
    "a=1; Secure; SameSite=None; Partitioned",
    "b=2; samesite = none ; HttpOnly",
    "c=3; SameSite=Strict",
  ];
  await using site = await startOrigin((_, response) => void response.writeHead(200, { "set-cookie": cookies }).end());
  await using place = await startProxy();
  const { stdout } = await curl(["-i", `${place.url}/${site.url}/`]);
  expect([...stdout.matchAll(/^set-cookie: (.*)\r$/gm)].map(([, value]) => value)).toEqual([
    `a=1; Path=/${site.url}/`,
    `b=2; HttpOnly; Path=/${site.url}/`,
    `c=3; SameSite=Strict; Path=/${site.url}/`,
  ]);
});

it("does not take credentials along when a redirect leads to another site", async () => {
  await using other = await startOrigin((request, response) => {
    if (request.url === "/first") response.writeHead(302, { location: "/second" }).end();
    else response.end("there");
  });
  await using site = await startOrigin((_, response) => {
    response.writeHead(302, { location: `${other.url}/first` }).end();
  });
  await using place = await startProxy();
  const { stdout } = await curl(["-L", "-u", "me:mine", "-b", "session=1", `${place.url}/${site.url}/`]);
  expect(stdout).toBe("there");
  expect(site.seen[0].headers).toMatchObject({ authorization: "Basic bWU6bWluZQ==", cookie: "session=1" });
  expect(other.seen.map(({ path }) => path)).toEqual(["/first", "/second"]);
  for (const { headers } of other.seen) {
    expect(headers.authorization).toBeUndefined();
    expect(headers.cookie).toBeUndefined();
  }
});

it("keeps the cookies of sites apart in a client's jar", async () => {
  const cookies = ["a=1; Domain=example.com; Path=/; Secure; HttpOnly", "b=2", "c=3; path=/deep"];
  await using one = await startOrigin((_, response) => void response.writeHead(200, { "set-cookie": cookies }).end());
  await using two = await startOrigin();
  await using place = await startProxy();
  const urls = [`${one.url}/d/page`, `${one.url}/d/again`, `${one.url}/deep/x`, `${two.url}/`];
  await curl(["-b", "", ...urls.flatMap((url) => ["-o", "/dev/null", `${place.url}/${url}`])]);
  expect(one.seen.map(({ headers }) => headers.cookie)).toEqual([undefined, "b=2; a=1", "c=3; a=1"]);
  expect(two.seen[0].headers.cookie).toBeUndefined();
});

it("answers browsers only where nobody else led them here", async () => {
  await using site = await startOrigin();
  await using place = await startProxy();
  const status = async (...head: string[]): Promise<string> => {
    const answer = await raw(
      place.port,
      `${[`GET /${site.url}/ HTTP/1.1`, "Connection: close", ...head].join("\r\n")}\r\n\r\n`,
    );
    return answer.slice(9, 12);
  };
  const host = `Host: 127.0.0.1:${place.port}`;
  expect(await status(host)).toBe("200");
  expect(await status(host, "Sec-Fetch-Site: none")).toBe("200");
  expect(await status(host, "Sec-Fetch-Site: cross-site")).toBe("403");
  expect(await status(host, "Sec-Fetch-Site: same-site")).toBe("403");
  expect(await status(host, "Origin: https://evil.example")).toBe("403");
  expect(await status(host, "Origin: null")).toBe("403");
  expect(await status(host, `Origin: http://127.0.0.1:${place.port + 1}`)).toBe("403");
  // A name of somebody else's that leads to 127.0.0.1.
  expect(await status(`Host: evil.example:${place.port}`)).toBe("421");
  expect(await status("Host: 127.0.0.1.evil.example")).toBe("421");
  expect(await status("Host: [::1]")).toBe("421");
  expect(await status("Host: localhost")).toBe("200");
  expect(site.seen).toHaveLength(3);
});

it("lets a page do nothing in the origin that all sites share", async () => {
  await using site = await startOrigin((_, response) => {
    response.writeHead(200, {
      "content-security-policy": "default-src 'self'",
      "strict-transport-security": "max-age=1",
      "clear-site-data": '"*"',
      "alt-svc": 'h3=":443"',
    });
    response.end();
  });
  await using place = await startProxy({}, { allowedHosts: ["pace.example"] });
  const { stdout } = await curl(["-i", "-H", "Host: Pace.Example", `${place.url}/${site.url}/`]);
  expect(stdout).toContain("content-security-policy: default-src 'self'\r\n");
  expect(stdout).toContain("Content-Security-Policy: sandbox\r\n");
  expect(stdout).not.toMatch(/strict-transport|clear-site|alt-svc/i);
});

it("says what it is to whoever asks for nothing", async () => {
  await using place = await startProxy();
  const { stdout } = await curl(["-i", `${place.url}/`, `${place.url}/favicon.ico`]);
  expect(stdout.match(/HTTP\/1\.1 404/g)).toHaveLength(2);
  expect(stdout).toContain("http://127.0.0.1:8788/https://example.com/path");
});

it("trusts no certificate that it does not know", async () => {
  await using site = await startOrigin(undefined, certificate);
  await using place = await startProxy();
  const { stdout } = await curl(["-i", `${place.url}/${site.url}/`]);
  expect(stdout).toMatch(/^HTTP\/1\.1 502 [\s\S]*error=tls_certificate_error/);
  expect(site.seen).toHaveLength(0);
});

it("takes https in the form of a proxy, names methods and bodies as they are, and logs no path", async () => {
  await using site = await startOrigin((request, response) => {
    request.pipe(response.writeHead(201, "Made Up"));
  }, certificate);
  await using place = await startProxy({}, { ca: [certificate.cert] });
  const put = `PUT ${site.url}/secret-path HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody`;
  const answer = await raw(place.port, put);
  expect(answer).toMatch(/^HTTP\/1\.1 201 Made Up\r\n[\s\S]*body/);
  expect(site.seen[0]).toMatchObject({ method: "PUT", path: "/secret-path" });
  expect(place.requests).toEqual([`PUT ${site.url} 201`]);
  await raw(place.port, `POST ${site.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(site.seen[1].headers).toMatchObject({ "content-length": "0" });
  const { stdout } = await curl(["-I", `${place.url}/${site.url}/`]);
  expect(stdout).toMatch(/^HTTP\/1\.1 201 /);
  expect(site.seen[2].method).toBe("HEAD");
});
