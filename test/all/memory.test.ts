import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HistorySource } from "../../src/model/source.ts";
import { serve } from "../../src/serve/server.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { ArchiveUnderTest, worldRun } from "../fixtures/archive/archived-world.ts";
import { type HeldMemory, type MeasuredProcess, startMeasured } from "../fixtures/command/memory-process.ts";

const mib = 2 ** 20;
/** Less than half of one buffer that a slice is fetched into; what a hundred reports take is a tenth of it. */
const mostHeldMib = 4;
/** Allocators keep what they may need again. */
const mostResidentMib = 48;

const runs = 60;
let folder: string;
let world: Simulator;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-memory-"));
  world = await openSimulator({
    seed: "memory",
    runs,
    fills: 40,
    rows: 300,
    cacheDir: join(folder, "worlds"),
  });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

test.each([
  ["rest", runs, "1", mostHeldMib],
  // others are under way when it is measured, each at another place
  ["rest", runs, "4", 4 * mostHeldMib],
  ["rpc", 30, "1", mostHeldMib],
] as const)(
  "archiving over %s, %i runs take the memory of ten, %s at a time",
  { timeout: 300_000 },
  async (transport, count, atATime, mostHeld) => {
    const { instanceId, runIds } = (await world.instances())[0]!;
    const archived = runIds.slice(0, count);
    const memory = new Map<string, HeldMemory>();
    let command: MeasuredProcess | undefined;
    // a run's facts are asked for before any of its rows: while a job waits for them, it holds what is left of the runs
    // before
    const facts: HistorySource["facts"] = async (run, bounds, signal) => {
      // side by side there are as many under way as ever only after a while
      const isMeasured = run.runId === archived[atATime === "1" ? 9 : 39] || run.runId === archived.at(-1);
      if (isMeasured && !memory.has(run.runId)) memory.set(run.runId, await command!.memory());
      return await world.facts(run, bounds, signal);
    };
    const gateway = await serve({ source: { ...world, facts }, control: world, host: "127.0.0.1", port: 0 });
    try {
      // several slices of a run at a time
      const slices = ["--tables", "fills", "--slice-rows", "10"];
      const from = ["--gateway", gateway.url, "--transport", transport];
      const named = archived.map((runId) => `${instanceId}/${runId}`);
      command = startMeasured([
        "archive",
        ...named,
        ...slices,
        ...from,
        "--archive",
        join(await mkdtemp(join(folder, `${transport}-${atATime}-`)), "archive"),
        ...["--parallel-runs", atATime],
      ]);
      const { status, stderr } = await command.finished;
      expect(status, stderr).toBe(0);
    } finally {
      command?.child.kill("SIGKILL");
      await gateway.close();
    }
    const [tenth, last] = memory.values();
    expectNoMore(last!, tenth!, mostHeld, atATime === "1" ? mostResidentMib : 2 * mostResidentMib);
  },
);

test("serving an archive, a thousand requests take the memory of a hundred", {
  timeout: 300_000,
}, async () => {
  await using made = await ArchiveUnderTest.create(["fills", "orders"]);
  await made.renew();
  const server = startMeasured(["serve", "--archive", made.archive.dir, "--json"]);
  try {
    const listening = Promise.withResolvers<string>();
    server.child.stdout.on("data", (line) => listening.resolve(String(line)));
    const { url } = JSON.parse(await listening.promise) as { url: string };
    for (let round = 0; round < 15; round++) await ask(url, round);
    const early = await server.memory();
    for (let round = 0; round < 145; round++) await ask(url, round);
    expectNoMore(await server.memory(), early);
  } finally {
    server.child.kill("SIGKILL");
    await server.finished;
  }
});

/** Seven requests: documents, rows whole and filtered, a page over RPC, one that is refused, one that is given up. */
async function ask(url: string, round: number): Promise<void> {
  const { instanceId, runId } = worldRun;
  const run = `instance=${instanceId}&run_id=${runId}`;
  const status = async (path: string, init?: RequestInit) => {
    const answer = await fetch(url + path, init);
    await answer.arrayBuffer();
    return answer.status;
  };
  const page = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ table: "orders", selection: { instanceId, runId }, pageSize: 10 }),
  };
  const filter = round % 5 === 0 ? "symbol=A" : "limit=3";
  expect([
    await status("/history/instances"),
    await status(`/history/storage?${run}`),
    await status(`/history/fills?${run}`),
    await status(`/history/orders?${run}&${filter}`),
    await status("/example.history.v1.HistoryService/PreviewTable", page),
    await status(`/history/fills?instance=${instanceId}&run_id=other`),
  ]).toEqual([200, 200, 200, 200, 200, 404]);
  const leaving = new AbortController();
  const left = status(`/history/orders?${run}`, { signal: leaving.signal }).catch(() => undefined);
  await sleep(round % 3);
  leaving.abort();
  await left;
}

function expectNoMore(
  late: HeldMemory,
  early: HeldMemory,
  mostHeld = mostHeldMib,
  mostResident = mostResidentMib,
): void {
  const grownMib = (figure: keyof HeldMemory) => (late[figure] - early[figure]) / mib;
  const figures = JSON.stringify({ early, late });
  expect(grownMib("heldBytes"), figures).toBeLessThan(mostHeld);
  expect(grownMib("residentBytes"), figures).toBeLessThan(mostResident);
}
