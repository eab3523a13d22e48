import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import { type ErrorCode, errorCodes, RunvaultError } from "../../src/model/error.ts";
import { smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { someOf } from "../fixtures/trials/cases.ts";

const codes = Object.keys(errorCodes) as ErrorCode[];
const ofTables = codes.filter((code) => errorCodes[code].scope === "table");
const ofMore = codes.filter((code) => errorCodes[code].scope !== "table");

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-error-scope-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Archives fills and orders of a gateway that answers with an error where it is asked for fills. */
async function archivedWith(code: ErrorCode) {
  const source = new ArraySource(worldRun, smallWorld(3), {
    refuses: ({ table }) => (table === "fills" ? new RunvaultError(code, `no fills: ${code}`) : undefined),
  });
  const archive = await openArchive(join(folder, code), { create: true });
  const outcome = await archiveRun({
    source,
    archive,
    run: worldRun,
    tables: ["fills", "orders"],
    clock: () => 2_000_000_000_000_000_000n,
    retry: quickRetry({ retries: 1 }),
    signal: new AbortController().signal,
    tool: "test",
  }).catch((error: unknown) => error);
  return { outcome, archive };
}

describe("an error that concerns a table leaves the run's other tables alone", () => {
  test.each(someOf(ofTables, 2))("%s", async (code) => {
    const { archive } = await archivedWith(code);
    const tables = (await archive.manifest(worldRun))?.tables;
    expect(tables?.fills?.attempt.error?.code).toBe(code);
    expect(latestView(tables?.orders)).toMatchObject({ state: "COMPLETE", certificate: { rows: 3 } });
  });
});

describe("an error that concerns more than a table ends the run, with nothing committed", () => {
  test.each(someOf(ofMore, 2))("%s", async (code) => {
    const { outcome, archive } = await archivedWith(code);
    expect(outcome).toMatchObject({ code });
    expect(await archive.manifest(worldRun)).toBeNull();
  });
});
