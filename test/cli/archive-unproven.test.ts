// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { serve } from "../../src/serve/server.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { withFaults } from "../fixtures/served/served-faults.ts";
import { someOf } from "../fixtures/trials/cases.ts";

let folder: string;

const runArgs = ["--all", "--finished", "--quiet", "--json"];

/** Archives all runs of a gateway; gives the exit status and the state of each table of the only run. */
async function archived(gateway: string, name: string, transport = "auto") {
  const to = ["--gateway", gateway, "--archive", join(folder, name), "--transport", transport];
  // what is refused stays so, and is not waited for
  const { status } = await runInside(["archive", ...to, ...runArgs, "--retries", "1"]);
  const archive = await openArchive(join(folder, name));
  const [manifest] = await archive.manifests();
  const states = Object.entries(manifest!.tables).map(([table, { state }]) => [table, state]);
  return {
    status,
    state: manifest!.state,
    states: Object.fromEntries(states) as Record<string, string>,
  };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-unproven-"));
  await using world = await openSimulator({ cacheDir: join(folder, "worlds"), runs: 1, rows: 2_000 });
  // what comes of the orders ends early, for good; a row of the bars is no row
  const wire = withFaults("status-500@orders*1000", "malformed@bars:5");
  const simulated = await serve({ source: world, control: world, host: "127.0.0.1", port: 0, wire });
  const made = await archived(simulated.url, "a", "rest");
  await simulated.close();
  expect(made.states).toMatchObject({ fills: "COMPLETE", orders: "INCOMPLETE", bars: "QUARANTINED" });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const ways = [
  ["rest", false, false],
  ["rpc", false, false],
  ["rest", false, true],
  ["rest", true, false],
  ["rpc", true, false],
] as const;

test.each(someOf<(typeof ways)[number]>(ways, 2))(
  "over %s, what is not proven here is not proven there either (incomplete tables served: %s, literal: %s)",
  async (transport, allowIncomplete, literal) => {
    await using source = openArchiveSource(await openArchive(join(folder, "a")), { allowIncomplete });
    const served = await serve({ source, host: "127.0.0.1", port: 0, literal });
    try {
      const name = `b-${transport}-${allowIncomplete}-${literal}`;
      const copy = await archived(served.url, name, transport);
      expect(copy.states).toMatchObject({ fills: "COMPLETE", orders: "INCOMPLETE", bars: "INCOMPLETE" });
      expect([copy.state, copy.status]).toEqual(["INCOMPLETE", 4]);
    } finally {
      await served.close();
    }
  },
  60_000,
);
