import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { HostNames, hostPattern, ownHostNames } from "../../src/serve/auth/host-names.ts";

const names = new HostNames(
  ["archive.example", "*.svc.cluster.local"],
  ["desk7", "desk7.corp.example", "127.0.0.1"],
);

describe("a host that no page can take is answered", () => {
  test.each([
    "127.0.0.1",
    "127.0.0.1:8080",
    "192.168.4.7:",
    "[::1]",
    "[::1]:8080",
    "[2001:DB8::7]:443",
    "[fe80::1%eth0]:80",
    "[fe80::1%25eth0]",
    // browsers send these as 127.0.0.1
    "0x7f.1",
    "0x7f000001:80",
    "2130706433",
    "0177.0.0.1",
    "localhost",
    "LocalHost.:8080",
    "desk.localhost",
    "desk7",
    "some_other-name:80",
    "desk7.corp.example",
    "DESK7.Corp.Example.:8080",
    "archive.example:443",
    "history.prod.svc.cluster.local",
    "history.svc.cluster.local.",
  ])("%s", (authority) => {
    expect(names.answers(authority)).toBe(true);
  });
});

describe("any other host is not", () => {
  test.each([
    "",
    ".",
    ":8080",
    "evil.example",
    "evil.example:8080",
    "archive.example.evil.example",
    "notarchive.example",
    "sub.archive.example",
    "svc.cluster.local",
    ".svc.cluster.local",
    "a..svc.cluster.local",
    "localhost..",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "256.0.0.1",
    "1.2.3.4.5",
    "user@localhost",
    "localhost@evil.example",
    "user:secret@localhost",
    "localhost:80:80",
    "localhost:http",
    "localhost, evil.example",
    "localhost evil.example",
    "localhost/evil.example",
    "localhost#evil.example",
    "loc%61lhost",
    "ⅼocalhost",
    "[::1",
    "[::1]evil.example",
    "[evil.example]",
    "[127.0.0.1]",
    "::1",
  ])("%s", (authority) => {
    expect(names.answers(authority)).toBe(false);
  });
});

test("a request is refused by whichever of its hosts is not answered", () => {
  const code = (rawHeaders: string[], url = "/api/v1/health") => names.refusal({ rawHeaders, url })?.code;
  expect(code(["Host", "localhost"])).toBeUndefined();
  expect(code(["hOST", "evil.example"])).toBe("misdirected");
  expect(code([])).toBe("misdirected");
  expect(code(["X-Forwarded-Host", "localhost", "Forwarded", "host=localhost"])).toBe("misdirected");
  expect(code(["Host", "evil.example", "X-Forwarded-Host", "localhost"])).toBe("misdirected");
  expect(code(["Host", "localhost", "X-Forwarded-Host", "evil.example"])).toBeUndefined();
  expect(code(["Host", "localhost", "host", "localhost"])).toBe("invalid_argument");
  // HTTP/2 names it in a pseudo-header, and may have a Host besides
  expect(code([":method", "GET", ":authority", "localhost:80"])).toBeUndefined();
  expect(code([":authority", "evil.example"])).toBe("misdirected");
  expect(code([":authority", "localhost", "host", "evil.example"])).toBe("misdirected");
  expect(code([":authority", "evil.example", "host", "localhost"])).toBe("misdirected");
  // a target with an origin goes ahead of Host
  expect(code(["Host", "localhost"], "http://evil.example/api/v1/health")).toBe("misdirected");
  expect(code(["Host", "localhost"], "HTTPS://evil.example?x")).toBe("misdirected");
  expect(code(["Host", "evil.example"], "http://localhost/api/v1/health")).toBe("misdirected");
  expect(code(["Host", "localhost"], "http://127.0.0.1/api/v1/health")).toBeUndefined();
});

test("a request over HTTP/2 is known by its authority", async () => {
  const server = http2.createServer((request, response) => {
    response.end(names.refusal(request)?.code ?? "answered");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const asked = async (headers: http2.OutgoingHttpHeaders) => {
    const stream = session.request({ ":path": "/", ...headers });
    return await new Response(Readable.toWeb(stream) as ReadableStream).text();
  };
  try {
    expect(await asked({})).toBe("answered");
    expect(await asked({ ":authority": "evil.example" })).toBe("misdirected");
    expect(await asked({ ":authority": "Archive.example." })).toBe("answered");
    expect(await asked({ ":authority": "localhost", host: "evil.example" })).toBe("misdirected");
  } finally {
    session.close();
    server.close();
  }
});

test("a name to answer to is compared in lower case, without its last dot, in ASCII", () => {
  expect(
    ["Archive.Example.", " *.SVC.cluster.local", "bücher.example", "*.localhost", "a_b"].map(hostPattern),
  ).toEqual(["archive.example", "*.svc.cluster.local", "xn--bcher-kva.example", "*.localhost", "a_b"]);
  expect(
    [
      "",
      "*",
      "*.",
      "*.*",
      "a.*.b",
      "archive.example:8080",
      "http://archive.example",
      "a b",
      "*.127.0.0.1",
    ].map(hostPattern),
  ).toEqual(Array(9).fill(null));
});

test("the machine's names are its own and those that its hosts file has beside that", async () => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-hosts-"));
  try {
    const file = join(folder, "hosts");
    await writeFile(
      file,
      "127.0.0.1 localhost other.example\n127.0.1.1\tdesk7.corp.example desk7 # desk7.comment.example\n",
    );
    expect(ownHostNames(file, "desk7")).toEqual(["desk7", "desk7.corp.example", "desk7"]);
    expect(ownHostNames(join(folder, "none"), "desk7")).toEqual(["desk7"]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("what is answered is said in words", () => {
  expect(`${names}`).toBe(
    "IP addresses, localhost, names without a dot, archive.example, desk7.corp.example, *.svc.cluster.local",
  );
});
