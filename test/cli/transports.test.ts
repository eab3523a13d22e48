// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { type ServeOptions, serve } from "../../src/serve/server.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { segmentLines } from "../fixtures/archive/archived-lines.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { withFaults } from "../fixtures/served/served-faults.ts";

const named = { instanceId: "alpha-1", runId: "2022-01-01-001" };
let folder: string;
let world: Simulator;
const inside = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-transports-"));
  world = await openSimulator({ cacheDir: inside("cache"), runs: 1, rows: 1_500, clock: () => 2n ** 62n });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Archives the run over a transport; what was asked for, and what the report says. */
async function archived(name: string, transport: string, more: Partial<ServeOptions> = {}) {
  const asked = new Set<string>();
  const server = await serve({
    source: world,
    control: world,
    host: "127.0.0.1",
    port: 0,
    // few enough that most tables take more than one answer, and page
    maxRowsPerAnswer: 100,
    onRequest: ({ path }) => void asked.add(path.includes("Service/") ? "rpc" : "rest"),
    onError: () => {},
    ...more,
  });
  try {
    const target = ["archive", "alpha-1/2022-01-01-001", "--gateway", server.url, "--archive", inside(name)];
    const { status, stdout, stderr } = await runInside([...target, "--transport", transport, "--json"]);
    expect(status, stderr).toBe(0);
    return { report: JSON.parse(stdout) as { runs: Record<string, unknown>[] }, asked: [...asked].sort() };
  } finally {
    await server.close();
  }
}

describe("a run", () => {
  test("archived over REST, over RPC and over both is the same archive", async () => {
    expect((await archived("rest", "rest")).asked).toEqual(["rest"]);
    expect((await archived("rpc", "rpc")).asked).toEqual(["rpc"]);
    expect((await archived("auto", "auto")).asked).toEqual(["rest", "rpc"]);
    for (const other of ["rpc", "auto"]) {
      const { status, stdout } = await runInside(["maintain", "diff", inside("rest"), inside(other)]);
      expect(stdout).toMatch(/^equal$/m);
      expect(status).toBe(0);
    }
    expect((await runInside(["verify", "--deep", "--archive", inside("rpc")])).status).toBe(0);
  });

  test("archived over RPC past every fault of pages is the same archive", async () => {
    await archived("undisturbed", "rpc");
    const faults = [
      "page-repeat@order_book:1",
      "token-expired@factors:1",
      "connect-error@orders:unavailable",
      "page-too-large@bars:1",
      "connect-error@equity:deadline_exceeded",
      "connect-error@events:internal",
      "cut-bytes@fills:3000",
      "rate-limit@metrics:0",
      "status-502@storage",
      "connect-error@runs:aborted",
    ];
    const { report } = await archived("disturbed", "rpc", { wire: withFaults(...faults) });
    expect(report.runs[0]).toMatchObject({ state: "COMPLETE" });
    expect(report.runs[0]!.retries).toBeGreaterThanOrEqual(6);
    const { stdout } = await runInside(["maintain", "diff", inside("undisturbed"), inside("disturbed")]);
    expect(stdout).toMatch(/^equal$/m);
  });
});

test("a field of an unknown number is kept in the segment and named as drift", async () => {
  await archived("drift", "rpc", { wire: withFaults("unknown-field@fills:3") });
  await archived("plain", "rpc");
  const archive = await openArchive(inside("drift"));
  const { fills, orders } = (await archive.manifest(named))!.tables;
  expect(fills).toMatchObject({ state: "COMPLETE", proven: { drift: [expect.stringMatching(/^#\d+$/)] } });
  expect(orders!.proven!.drift).toEqual([]);
  const lines = await segmentLines(archive, named, "fills");
  const plain = await segmentLines(await openArchive(inside("plain")), named, "fills");
  const odd = lines.filter((line) => line.includes('"#'));
  expect(odd).toHaveLength(1);
  expect(lines.map((line) => line.replace(/,"#\d+":"[^"]*"\}$/, "}"))).toEqual(plain);
});
