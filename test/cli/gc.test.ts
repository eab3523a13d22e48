import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Collected } from "../../src/archive/upkeep/collect-garbage.ts";
import { wallClock } from "../../src/model/time.ts";
import { RebuildWorld, second } from "../fixtures/archive/rebuild-world.ts";
import { run } from "../fixtures/archive/table-world.ts";

let under: RebuildWorld;
beforeEach(async () => {
  under = await RebuildWorld.create();
  for (const of of [run, second]) await under.archiveFills(of);
});
afterEach(() => under[Symbol.asyncDispose]());

describe("gc", () => {
  test("says by kind what went and what did not, with files and bytes, and a dry run the same", async () => {
    const { layout } = under.archive;
    await under.rebuild(run, 1, wallClock());
    await writeFile(join(layout.dataDir(second), "fills.g9.000001.parquet"), "x".repeat(1000));
    expect(await under.command("gc")).toEqual({
      status: 0,
      stderr: "",
      stdout: expect.stringMatching(
        /^removed 0 files, 0 B\nkept 2 files, [\d.]+ kB\n {2}2 files, [\d.]+ kB within --grace\n$/,
      ),
    });
    const told = await under.command("gc", "--grace", "0s", "--dry-run");
    expect(told.stdout).toMatch(
      /^would remove 2 files, [\d.]+ kB\n {2}1 file, [\d.]+ kB replaced by later commits\n {2}1 file, 1.0 kB named by no manifest\n$/,
    );
    const done = await under.command("gc", "--grace", "0s");
    expect(done).toEqual({ ...told, stdout: told.stdout.replace("would remove", "removed") });
    const names = await readdir(layout.dataDir(run));
    expect(names.filter((name) => name.endsWith(".parquet")).length).toBe(1);
    const json = JSON.parse((await under.command("gc", "--json")).stdout) as Collected;
    expect(json).toMatchObject({ dryRun: false, removed: { replaced: { files: 0, bytes: 0 } } });
    expect(Object.keys(json.kept)).toContain("unfinished");
  });

  test("ends with 5 for a manifest that cannot be read, and with 2 where there is no archive or no unit", async () => {
    const { layout, dir } = under.archive;
    await writeFile(layout.manifestFile(run), "{");
    const { status, stderr } = await under.command("gc", "--grace", "0s");
    expect(status).toBe(5);
    expect(stderr).toContain(layout.manifestFile(run));
    expect((await under.command("gc", "--grace", "1")).status).toBe(2);
    expect((await under.command("gc", "--grace", "5m")).stderr).toContain("may be minutes or months");
    await rm(dir, { recursive: true });
    expect((await under.command("gc")).status).toBe(2);
  });
});
