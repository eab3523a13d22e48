import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import type { Transport } from "../../src/serve/transport.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { start } from "../fixtures/command/command-process.ts";
import { inProject } from "../fixtures/command/project.ts";

const flag = "V8 flags: --external-memory-accounted-in-global-limit";
const env = {
  NODE_OPTIONS: `--import ${pathToFileURL(inProject("test/fixtures/command/flags-told.ts")).href}`,
};

let folder: string;
let world: Simulator;
const gateways = new Map<string, Served>();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-buffers-"));
  world = await openSimulator({ seed: "buffers", runs: 1, rows: 300, cacheDir: join(folder, "worlds") });
  await openArchive(join(folder, "empty"), { create: true });
  const offered: [string, Transport[]][] = [
    ["both", ["rest", "rpc"]],
    ["rpc", ["rpc"]],
  ];
  for (const [name, transports] of offered) {
    gateways.set(
      name,
      await serve({ source: world, control: world, host: "127.0.0.1", port: 0, transports }),
    );
  }
});
afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.close();
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

test.each([
  ["both", "rpc", true],
  ["rpc", "auto", true],
  ["both", "auto", false],
] as const)(
  "archive from a gateway with %s over %s: whether buffers count with V8's heap is %s",
  async (offered, transport, counts) => {
    const { url } = gateways.get(offered)!;
    const archive = join(folder, `${offered}-${transport}`);
    const args = [
      "archive",
      "--all",
      "--finished",
      "--tables",
      "fills",
      "--gateway",
      url,
      "--archive",
      archive,
    ];
    const { status, stderr } = await start([...args, "--transport", transport], env).finished;
    expect(status, stderr).toBe(0);
    expect(stderr.includes(flag)).toBe(counts);
  },
);

test.each([["simulate", "--runs", "1", "--rows", "300"], ["serve"]])(
  "%s counts buffers with V8's heap",
  async (...args) => {
    const where = args[0] === "serve" ? ["--archive", join(folder, "empty")] : ["--cache", join(folder, "w")];
    const { child, finished, seen } = start([...args, ...where, "--json"], env);
    await seen("url");
    child.kill("SIGTERM");
    expect((await finished).stderr).toContain(flag);
  },
);
