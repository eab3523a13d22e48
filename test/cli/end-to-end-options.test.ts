// @module-tag slow
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningInside, runInside, startInside } from "../fixtures/command/command-inside.ts";

let folder: string;
let gateway: RunningInside;
let url: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-options-"));
  const world = ["--rows", "300", "--runs", "1", "--cache", join(folder, "cache")];
  gateway = startInside(["simulate", "--port", "0", ...world]);
  url = await gateway.firstLine();
});
afterAll(async () => {
  gateway.signal("SIGTERM");
  await gateway.finished;
  await rm(folder, { recursive: true, force: true });
});

const archive = (...more: string[]) =>
  runInside(["archive", "alpha-1", "--finished", "--gateway", url, ...more]);

test("a manifest names the version that wrote it", async () => {
  const dir = join(folder, "a");
  expect(await archive("--archive", dir)).toMatchObject({ status: 0 });
  const manifest = JSON.parse(await readFile(join(dir, "runs/alpha-1/2022-01-01-001.json"), "utf8"));
  expect(manifest.tool).toMatch(/^runvault \d+\.\d+\.\d+/);
});

test("--decimal for no exact column, or other than the archive has it, is refused", async () => {
  const dir = join(folder, "b");
  const nothing = await archive("--archive", dir, "--decimal", "fills.nope=18,2");
  expect(nothing).toMatchObject({ status: 2 });
  expect(nothing.stderr).toContain("fills.nope");
  expect(await archive("--archive", dir, "--decimal", "fills.price=30,12")).toMatchObject({ status: 0 });
  const other = await archive("--archive", dir, "--decimal", "fills.price=18,2");
  expect(other).toMatchObject({ status: 2 });
  expect(other.stderr).toContain("this archive keeps it as DECIMAL(30,12)");
  expect(await archive("--archive", dir, "--decimal", "fills.price=30,12")).toMatchObject({ status: 0 });
});

test("a removed run is gone from every list and can be archived again", async () => {
  const dir = join(folder, "c");
  expect(await archive("--archive", dir)).toMatchObject({ status: 0 });
  expect(await runInside(["rm", "alpha-1/2022-01-01-001", "--archive", dir])).toMatchObject({ status: 0 });
  expect(await runInside(["runs", "--archive", dir])).toMatchObject({ status: 0, stdout: "no runs\n" });
  expect(await runInside(["export", "--list", "fills", "--archive", dir])).toMatchObject({
    status: 0,
    stdout: "",
  });
  expect(await archive("--archive", dir)).toMatchObject({ status: 0 });
  expect(await runInside(["maintain", "diff", dir, dir])).toMatchObject({ status: 0 });
});
