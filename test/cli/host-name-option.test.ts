import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reachableUrl } from "../../src/cli/options/serve-options.ts";
import { runInside, startInside } from "../fixtures/command/command-inside.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-host-name-"));
});
afterAll(() => rm(folder, { recursive: true }));

const small = () => ["simulate", "--rows", "500", "--runs", "1", "--cache", folder];

/** Statuses of requests with these Host headers, and what the server said on standard error. */
async function asked(args: readonly string[], hosts: readonly string[], env: Record<string, string> = {}) {
  const server = startInside([...small(), ...args], { env });
  const url = await server.firstLine();
  const statuses: number[] = [];
  for (const host of hosts) {
    const { statusCode, body } = await request(`${url}/instances`, { headers: { host } });
    await body.dump();
    statuses.push(statusCode);
  }
  server.signal("SIGTERM");
  const { stderr } = await server.finished;
  return { statuses, stderr };
}

describe("--host-name", () => {
  test("is repeatable, takes commas and wildcards, and is told", async () => {
    const { statuses, stderr } = await asked(
      ["--host-name", "Archive.example,other.example", "--host-name", "*.svc.cluster.local"],
      ["archive.example", "other.example:80", "a.svc.cluster.local", "third.example"],
    );
    expect(statuses).toEqual([200, 200, 200, 421]);
    expect(stderr).toMatch(
      /localhost, names without a dot, archive\.example, other\.example, .*\*\.svc\.cluster\.local/,
    );
  });

  test("comes from the environment, which the flag overrides", async () => {
    const env = { RUNVAULT_HOST_NAME: "archive.example, other.example" };
    const hosts = ["archive.example", "other.example", "flag.example"];
    expect((await asked([], hosts, env)).statuses).toEqual([200, 200, 421]);
    expect((await asked(["--host-name", "flag.example"], hosts, env)).statuses).toEqual([421, 421, 200]);
  });

  test.each(["archive.example:8080", "*", "http://archive.example", ""])("%j is refused", async (name) => {
    const { status, stderr } = await runInside([...small(), "--host-name", name]);
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining("--host-name must be a host name without a port"),
    ]);
  });
});

test("the name that is listened on is answered", async () => {
  expect((await asked(["--host", "localhost"], ["localhost", "evil.example"])).statuses).toEqual([200, 421]);
});

test("a server on every address prints one that other machines can connect to", () => {
  const address = { netmask: "", mac: "", cidr: null };
  const interfaces = {
    lo: [{ ...address, address: "127.0.0.1", family: "IPv4" as const, internal: true }],
    eth0: [
      { ...address, address: "fe80::1", family: "IPv6" as const, internal: false, scopeid: 1 },
      { ...address, address: "192.0.2.7", family: "IPv4" as const, internal: false },
    ],
  };
  const shown = (url: string, of: Parameters<typeof reachableUrl>[1] = interfaces) => reachableUrl(url, of);
  expect(shown("http://0.0.0.0:8080/api/v1")).toBe("http://192.0.2.7:8080/api/v1");
  expect(shown("https://[::]:8080/api/v1")).toBe("https://192.0.2.7:8080/api/v1");
  expect(shown("http://127.0.0.1:8080/api/v1")).toBe("http://127.0.0.1:8080/api/v1");
  expect(shown("http://0.0.0.0:8080/api/v1", {})).toBe("http://0.0.0.0:8080/api/v1");
});
