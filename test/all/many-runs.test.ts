import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { serve } from "../../src/serve/server.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { start } from "../fixtures/command/command-process.ts";
import { inProject } from "../fixtures/command/project.ts";

const runs = 100;
const syncsTold = pathToFileURL(inProject("test/fixtures/command/syncs-told.mjs")).href;

test("100 small runs keep to their limits of requests, memory and syncs, and ask for nothing the night after", {
  timeout: 300_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-many-"));
  await using world = await openSimulator({
    seed: "many",
    runs,
    rows: 400,
    cacheDir: join(folder, "worlds"),
  });
  const paths: string[] = [];
  const gateway = await serve({
    source: world,
    control: world,
    host: "127.0.0.1",
    port: 0,
    onRequest: ({ path }) => void paths.push(path),
  });
  const archive = async () => {
    paths.length = 0;
    const args = ["archive", "--all", "--finished", "--json", "--gateway", gateway.url];
    const running = start([...args, "--archive", join(folder, "archive")], {
      NODE_OPTIONS: `--import ${syncsTold}`,
    });
    const { status, stdout, stderr } = await running.finished;
    expect(status, stderr).toBe(0);
    const { peakMemoryMb, totals } = JSON.parse(stdout) as { peakMemoryMb: number; totals: { runs: number } };
    expect(totals.runs).toBe(runs);
    return { peakMemoryMb, syncs: Number(/^syncs (\d+)$/m.exec(stderr)![1]), requests: paths.length };
  };
  try {
    const first = await archive();
    // eight row answers, facts before and after and five times more, summary, resources; more where a table's answer is the
    // largest so far
    expect(first.requests).toBeLessThanOrEqual(17 * runs + 150);
    expect(first.peakMemoryMb).toBeLessThanOrEqual(500);
    expect(first.syncs).toBeLessThanOrEqual(65 * runs);
    const second = await archive();
    expect(second.requests).toBeLessThanOrEqual(6);
    expect(second.syncs).toBe(0);
  } finally {
    await gateway.close();
    await rm(folder, { recursive: true, force: true });
  }
});
