import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { tables } from "../../src/model/profile/table.ts";
import { serve } from "../../src/serve/server.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { asPythonShows, pythonRows } from "../fixtures/command/python-modules.ts";
import { requires } from "../fixtures/command/requirement.ts";

const folder = await mkdtemp(join(tmpdir(), "runvault-python-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

test.skipIf(!requires("rpc-client"))(
  "a Python client made from the proto files pages every table, and has the rows that REST has",
  async () => {
    await using world = await openSimulator({
      seed: "python",
      runs: 1,
      rows: 1500,
      cacheDir: join(folder, "worlds"),
    });
    const [instance] = await world.instances();
    const { instanceId } = instance!;
    const runId = instance!.currentRunId;
    const server = await serve({ source: world, control: world, host: "127.0.0.1", port: 0 });
    try {
      const names = tables.map(({ name }) => name);
      const seen = await pythonRows(folder, server, { instanceId, runId }, 97, names);
      for (const { name, path } of tables) {
        const response = await fetch(`${server.url}${path}?instance=${instanceId}&run_id=${runId}`);
        const lines = (await response.text()).trimEnd().split("\n");
        const rows = seen.filter(({ table }) => table === name).map(({ fields }) => fields);
        expect([name, lines.length > 1]).toEqual([name, true]);
        expect(rows).toEqual(lines.map((line) => asPythonShows(name, line)));
      }
    } finally {
      await server.close();
    }
  },
);
