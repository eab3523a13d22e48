import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Served, serve } from "../../src/serve/server.ts";
import { smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

/** An id that a shell would split in two. */
const run = { ...worldRun, runId: "2022-01-01 b" };

let folder: string;
let server: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-strict-hint-"));
  server = await serve({ source: new ArraySource(run, smallWorld(9, run)), host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

test("the command that --strict hints at archives the table that never was", async () => {
  const archive = ["--archive", join(folder, "archive")];
  const gateway = ["--gateway", server.url, "--transport", "rest"];
  const only = ["archive", `alpha/${run.runId}`, "--tables", "fills", ...gateway, ...archive];
  expect((await runInside(only)).status).toBe(0);

  const query = ["query", "SELECT count(*) AS n FROM orders", "--format", "csv", "--strict", ...archive];
  const { status, stderr } = await runInside(query);
  expect(status).toBe(4);
  const hinted =
    /never archived for alpha\/2022-01-01 b: `runvault (\w+) (--archive) (\S+) '([^']*)' (--tables) (\w+)`/.exec(
      stderr,
    );
  expect(hinted?.slice(1)).toEqual(["archive", ...archive, "alpha/2022-01-01 b", "--tables", "orders"]);

  expect((await runInside([...hinted!.slice(1), ...gateway])).status).toBe(0);
  expect(await runInside(query)).toMatchObject({ status: 0, stdout: "n\n9\n", stderr: "" });
});
