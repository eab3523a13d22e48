import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openArchive } from "../../../src/archive/archive.ts";
import { randomFrom } from "../../../src/simulator/world/random.ts";
import { beginLine, failedRun, resultLine, writeRecord } from "../../fixtures/archive/job-records.ts";
import { craftArchive } from "../../fixtures/attack/archives.ts";
import { type Running, run, start } from "../../fixtures/command/command-process.ts";
import { peakMib } from "../../fixtures/command/process-tree.ts";
import { trialCount, trialSeed } from "../../fixtures/trials/trials.ts";

/** What a job over so small an archive takes, with DuckDB and a great deal of room. */
const mostMib = 900;
/** A command over it takes a second; this is for what hangs, on a machine that is busy. */
const mostSeconds = 60;

let folder: string;
let base: string;
let gateway: Running;
let address: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-attack-"));
  base = join(folder, "base");
  const world = ["--runs", "3", "--fills", "60", "--cache", join(folder, "worlds")];
  gateway = start(["simulate", ...world, "--port", "0", "--fault", "malformed@fills:30"]);
  address = await gateway.firstLine();
  const archived = await run(["archive", "--all", "--finished", "--gateway", address, "--archive", base]);
  expect(archived.status, archived.stderr).toBe(4);
  const [one] = JSON.parse((await run(["runs", "--archive", base, "--json"])).stdout).runs as {
    run: string;
  }[];
  // one run has an interrupted job besides
  const again = ["archive", `alpha-1/${one!.run}`, "--recheck", "--gateway", address, "--archive", base];
  await run(again, { RUNVAULT_KILL_AT: "segment-journalled" });
  const { layout } = await openArchive(base);
  await writeRecord(layout, beginLine(1), failedRun, resultLine());
  await writeRecord(layout, beginLine(2), failedRun);
});
afterAll(async () => {
  gateway.child.kill();
  await gateway.finished;
  await rm(folder, { recursive: true, force: true });
});

const commands: readonly (readonly string[])[] = [
  ["runs"],
  ["runs", "--json"],
  ["runs", "--wide", "--state", "COMPLETE,pending"],
  ["status"],
  ["status"],
  ["jobs"],
  ["jobs", "show", "last"],
  ["verify", "alpha-1"],
  ["rm", "--older-than", "0s", "--any-state", "--dry-run"],
  ["rm", "--older-than", "0s"],
  ["maintain", "rebuild", "--links"],
  ["verify"],
  ["verify", "--deep", "--repair"],
  ["query", "SELECT count(*), sum(price) FROM fills"],
  ["query", "--allow-incomplete", "SELECT * FROM orders, runs"],
  ["export", "--list", "fills"],
  ["export", "fills", "--format", "csv", "--out", "-"],
  ["maintain", "rebuild"],
  ["archive", "--all", "--finished"],
  ["archive", "--all", "--finished", "--dry-run"],
];

test("archives that somebody else wrote", async () => {
  const random = randomFrom(`archives ${trialSeed}`);
  const outside = join(folder, "outside");
  await mkdir(outside);
  await writeFile(join(outside, "canary"), "this-must-not-be-told\n");
  const before = await contentOf(outside);
  for (let n = trialCount(4); n > 0; n--) {
    const dir = join(folder, "crafted");
    spawnSync("cp", ["-a", base, dir]);
    const told = craftArchive(dir, outside, random);
    const some = Array.from({ length: 4 }, () => commands[random.below(commands.length)]!);
    for (const command of some) {
      const gatewayOption = command[0] === "archive" ? ["--gateway", address] : [];
      const startedMs = performance.now();
      const { child, finished } = start([...command, ...gatewayOption, "--archive", dir]);
      const late = setTimeout(() => child.kill("SIGKILL"), mostSeconds * 1000);
      const peak = await peakMib(child.pid!, finished);
      clearTimeout(late);
      const { status, stdout, stderr } = await finished;
      const about = `seed ${trialSeed}, ${told}: ${command.join(" ")}\n${stderr.slice(0, 2000)}`;
      expect((performance.now() - startedMs) / 1000, about).toBeLessThan(mostSeconds);
      expect([0, 2, 3, 4, 5, 6, 7], about).toContain(status);
      expect(stderr, about).not.toContain("bug in runvault");
      expect(`${stdout}${stderr}`, about).not.toContain("this-must-not-be-told");
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      expect(`${stdout}${stderr}`, about).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
      expect(peak, about).toBeLessThan(mostMib);
      expect(await contentOf(outside), about).toEqual(before);
    }
    spawnSync("rm", ["-rf", dir]);
  }
}, 3_600_000);

/** What a folder holds, by path. */
async function contentOf(dir: string): Promise<Record<string, string>> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const hashes = await Promise.all(
    files.map(
      async (file) =>
        [
          file,
          createHash("sha256")
            .update(await readFile(file))
            .digest("hex"),
        ] as const,
    ),
  );
  return Object.fromEntries(hashes);
}
