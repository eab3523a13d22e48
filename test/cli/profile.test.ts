import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { runInside } from "../fixtures/command/command-inside.ts";
import { pagedProfile, type Scheme, schemes } from "../fixtures/foreign/paged.ts";

let folder: string;
let server: Server;
let seen: IncomingMessage[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
  seen = [];
  server = createServer((request, response) => {
    seen.push(request);
    const { pathname } = new URL(request.url!, "http://x");
    response.setHeader("content-type", "application/json");
    if (pathname === "/v2/desks") {
      response.end('{"data":{"desks":[{"name":"alpha"}]}}');
    } else if (pathname === "/v2/desks/alpha/executions") {
      response.end('{"data":[{"executionId":"7","openedAt":"2026-01-01T00:00:00Z","state":"live"}]}');
    } else if (pathname.endsWith("/executions")) {
      response.writeHead(404).end("{}");
    } else {
      // as many do, it says what it was asked for
      response.writeHead(403).end(JSON.stringify({ error: { code: "no", message: `not ${request.url}` } }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  server.close();
  await rm(folder, { recursive: true, force: true });
});

const gateway = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const acme = `profile: 1
name: acme
headers: { X-Client: { env: ACME_CLIENT } }
rest: { base: /v2, keys: { api_key: { env: ACME_KEY, in_address: true } } }
documents:
  instances: { path: /desks, list: data.desks, id: name }
  runs: { path: "/desks/{instance}/executions", list: data, id: executionId, started: openedAt, unit: rfc3339, status: state, words: { live: RUNNING } }
tables:
  fills: { path: "/executions/{run}/trades" }
`;

async function write(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

const env = { ACME_CLIENT: "5ecret-client", ACME_KEY: "5ecret-key" };

describe("a command with a gateway", () => {
  test("speaks to it by a profile, which the environment may name as well, with its headers and keys", async () => {
    const profile = await write("acme.yaml", acme);
    for (const [args, more] of [
      [["--profile", profile], {}],
      [[], { RUNVAULT_PROFILE: profile }],
    ] as const) {
      const { status, stdout, stderr } = await runInside(
        ["runs", "--gateway", gateway(), "--json", ...args],
        {
          env: { ...env, ...more },
        },
      );
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(JSON.parse(stdout).runs).toMatchObject([{ instanceId: "alpha", runId: "7", status: "RUNNING" }]);
    }
    expect(seen.length).toBeGreaterThanOrEqual(4);
    for (const { url, headers } of seen) {
      expect(headers["x-client"]).toBe("5ecret-client");
      expect(new URL(url!, "http://x").searchParams.get("api_key")).toBe("5ecret-key");
    }
  });

  test("shows no value of a header or key, whatever the gateway says", async () => {
    const profile = await write("acme.yaml", acme.replace("/desks,", "/refused,"));
    const { status, stdout, stderr } = await runInside(
      ["runs", "--gateway", gateway(), "--profile", profile, "--debug", "--verbose"],
      { env },
    );
    expect(status).toBe(9);
    expect(stderr).toContain("permission_denied");
    expect(stdout + stderr).not.toContain("5ecret");
  });

  test("tells all that is wrong with the profile, and asks nothing", async () => {
    const profile = await write("acme.yaml", acme.replace("base:", "bse:").replace("fills:", "fils:"));
    const { status, stderr } = await runInside(["runs", "--gateway", gateway(), "--profile", profile], {
      env,
    });
    expect(status).toBe(2);
    expect(stderr).toContain(`there is no key bse in rest\n  at: file ${profile}, line 4, column 9`);
    expect(stderr).toContain("Did you mean base?");
    expect(stderr).toContain(`there is no key fils in tables\n  at: file ${profile}, line 9, column 3`);
    expect(seen).toEqual([]);
  });

  test("names the variable that a profile needs", async () => {
    const profile = await write("acme.yaml", acme);
    const { status, stderr } = await runInside(["runs", "--gateway", gateway(), "--profile", profile]);
    expect(status).toBe(2);
    expect(stderr).toContain("needs the environment variable ACME_CLIENT, which is not set");
  });
});

describe("runvault profile", () => {
  test("shows the built-in profile, or a file's with all that it extends", async () => {
    const byDefault = await runInside(["profile", "show"]);
    expect(byDefault.status).toBe(0);
    expect(parse(byDefault.stdout)).toMatchObject({ profile: 1, name: "default", rows: { canonical: true } });
    await write("base.yaml", acme);
    const path = await write(
      "acme.yaml",
      "profile: 1\nname: desk\nextends: base.yaml\nrest: { base: /v3 }\n",
    );
    const { stdout } = await runInside(["profile", "show", path]);
    expect(parse(stdout)).toMatchObject({ name: "desk", rest: { base: "/v3" }, tables: { fills: {} } });
    const json = await runInside(["profile", "show", path, "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ name: "desk", file: path, described: ["fills"] });
  });

  // a total that were dropped on the way would leave pages unproven without a word
  test.each(Object.keys(schemes) as Scheme[])("shows pages by %s as they are written", async (scheme) => {
    const written = pagedProfile(scheme, true);
    const { stdout } = await runInside(["profile", "show", await write("paged.yaml", written)]);
    const { pages } = parse(written).rest;
    const first = scheme === "number" ? { first: 1 } : {};
    expect(parse(stdout).rest.pages).toEqual({ ...pages, ...first });
  });

  test("prints a schema for editors", async () => {
    const { status, stdout } = await runInside(["profile", "schema"]);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ title: "runvault profile" });
    expect((await runInside(["profile", "schema", "x"])).status).toBe(2);
  });
});

describe("a job file", () => {
  const job = `version: 1
name: nightly
gateway: { url: "http://127.0.0.1:1/api/v1", profile: profiles/acme.yaml }
archive: vault
runs: {}
`;

  test("names a profile beside it, whose faults are its own", async () => {
    const path = await write("job.yaml", job);
    const missing = await runInside(["check", path]);
    expect(missing.status).toBe(2);
    expect(missing.stdout).toContain("job.yaml:3:55: gateway.profile: the file does not exist");
    const beside = await write("acme.yaml", acme.replace("base:", "bse:"));
    await writeFile(path, job.replace("profiles/acme.yaml", "acme.yaml"));
    const { status, stdout } = await runInside(["check", path]);
    expect(status).toBe(2);
    expect(stdout).toContain("job.yaml:3:55: gateway.profile: 4:9: there is no key bse in rest");
    await writeFile(beside, acme);
    expect((await runInside(["check", path], { env })).status).toBe(0);
  });
});
