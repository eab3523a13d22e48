import { createHash } from "node:crypto";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";

const committed = join(import.meta.dirname, "../fixtures/archive/format-2/archive");
const run = "alpha-1/2022-01-01-001";

let folder: string;
let manifest: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-format-2-"));
  await cp(committed, folder, { recursive: true });
  manifest = join(folder, "runs", `${run}.json`);
});
afterEach(() => rm(folder, { recursive: true, force: true }));
const command = (...args: string[]) => runInside([...args, "--archive", folder]);

describe("an archive that runvault 0.1.0 left, of format 2", () => {
  // a member that a later version demands of a manifest, or a file that it wants beside it, would fail here
  test("is read, verified, and left as it is", async () => {
    const before = await readFile(manifest, "utf8");
    const counts = "SELECT (SELECT count(*) FROM fills), (SELECT count(*) FROM equity)";
    expect((await command("query", "-f", "csv", counts)).stdout.split("\n")[1]).toBe("10,30");
    expect((await command("verify", "--deep")).stdout).toMatch(/^alpha-1\/2022-01-01-001 {2}verified/);
    const { runs } = JSON.parse((await command("runs", "--json")).stdout);
    expect(runs).toMatchObject([{ runId: "2022-01-01-001", state: "COMPLETE" }]);
    expect(await readFile(manifest, "utf8")).toBe(before);
  });
});

describe("a manifest of a format that is newer than this runvault", () => {
  // it would be called damaged, and its owner would restore or remove what is whole
  test("is refused with the formats that are known and the runvault that wrote it, and left as it is", async () => {
    const { sha256: _, ...rest } = JSON.parse(await readFile(manifest, "utf8"));
    const newer = { ...rest, format: 3, tool: "runvault 9.0.0" };
    const sha256 = createHash("sha256").update(JSON.stringify(newer)).digest("hex");
    const text = `${JSON.stringify({ ...newer, sha256 })}\n`;
    await writeFile(manifest, text);
    const { status, stdout } = await command("verify", run);
    expect([status, stdout]).toEqual([
      5,
      expect.stringContaining("the manifest has format 3, and this runvault reads 1 and 2"),
    ]);
    expect(stdout).toContain("runvault 9.0.0");
    expect(await readFile(manifest, "utf8")).toBe(text);
  });
});
