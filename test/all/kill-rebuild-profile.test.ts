import { createHash } from "node:crypto";
import { cp, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { diffArchives } from "../../src/archive/diff/diff.ts";
import { Layout } from "../../src/archive/layout.ts";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import { filesOf } from "../../src/archive/manifest/manifest-files.ts";
import { holdingsOf } from "../../src/archive/manifest/table-view.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { randomFrom } from "../../src/simulator/world/random.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { start } from "../fixtures/command/command-process.ts";
import { filesBelow, timeless } from "../fixtures/command/kill-driver.ts";
import { profileOf, withoutExtra } from "../fixtures/foreign/foreign-bench.ts";
import { ForeignGateway } from "../fixtures/foreign/foreign-gateway.ts";
import { type DialectName, dialects } from "../fixtures/foreign/foreign-gateways.ts";
import { trialCount, trialSeed } from "../fixtures/trials/trials.ts";

/** Over both gateways. */
const kills = trialCount(4);

/** What stands wrong in a profile that was used first. */
const mistakes = {
  acme: [
    ["words: { B: BUY, S: SELL }", "words: { B: SELL, S: BUY }"],
    ["account: acct", "account: instrument.isin"],
  ],
  // rows of the other side are set aside
  dahlia: [
    ["words: { 1: BUY, -1: SELL }", "words: { 1: BUY }"],
    ["resource_key: key", "resource_key: book"],
    ["portfolio: book", "portfolio: key"],
  ],
} as const satisfies Partial<Record<DialectName, readonly (readonly [string, string])[]>>;

const runs = ["2026-01-05", "2026-01-05b"].map((runId) => ({ instanceId: "north", runId }));
const env = { ACME_CLIENT: "runvault-tests" };

/** What readers find of each run. */
interface Shown {
  readonly manifest: Manifest;
  readonly lines: Readonly<Record<string, readonly string[]>>;
  readonly failed: readonly unknown[];
}

async function shownIn(dir: string): Promise<Shown[]> {
  const archive = await openArchive(dir);
  return await Promise.all(
    runs.map(async (run) => {
      const manifest = (await archive.manifest(run))!;
      const lines: Record<string, readonly string[]> = {};
      for (const name of Object.keys(manifest.tables) as TableName[]) {
        lines[name] = await segmentLines(archive, run, name);
        expect(await parquetLines(archive, run, name)).toEqual(
          lines[name].map((line) => withoutExtra(line, name)),
        );
      }
      const { checks } = await verifyRun(archive, run, { duckdb: sharedDuckDB });
      return { manifest, lines, failed: checks.filter(({ ok }) => !ok) };
    }),
  );
}

const linkedHashes = ({ manifest }: Shown) =>
  Object.values(manifest.tables).flatMap((table) =>
    holdingsOf(table).flatMap(({ parquet }) => parquet.map(({ sha256 }) => sha256)),
  );

describe.each(Object.keys(mistakes) as (keyof typeof mistakes)[])(
  "rows of %s that a wrong profile brought",
  (name) => {
    const wanted = Math.ceil(kills / Object.keys(mistakes).length);
    let folder: string;
    let pristine: string;
    let rebuilt: string;
    let before: Shown[];
    let after: Shown[];
    /** From the first work on a run to the end, undisturbed. */
    let jobMs: number;

    const command = (dir: string) => ["maintain", "rebuild", "--profile", profileOf(name), "--archive", dir];

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "runvault-kill-profile-"));
      pristine = join(folder, "pristine");
      rebuilt = join(folder, "rebuilt");
      let text = await readFile(profileOf(name), "utf8");
      for (const [right, wrong] of mistakes[name]) text = text.replace(right, wrong);
      const wrong = join(folder, `${name}.yaml`);
      await writeFile(wrong, text);
      if (name === "acme") await cp(join(profileOf(name), "..", "acme.key"), join(folder, "acme.key"));
      await using gateway = await ForeignGateway.open(dialects[name]);
      const refs = runs.map(({ instanceId, runId }) => `${instanceId}/${runId}`);
      const from = ["--gateway", gateway.url, "--profile", wrong, "--archive", pristine, "--settle", "1ms"];
      const small = ["--segment-bytes", "2000", "--slice-rows", "10"];
      const { status } = await runInside(["archive", ...refs, ...from, ...small], { env });
      expect(status).toBe(name === "acme" ? 0 : 4);
      before = await shownIn(pristine);
      await cp(pristine, rebuilt, { recursive: true });
      jobMs = (await killAfter(rebuilt, 2 ** 31 - 1)).workMs;
      after = await shownIn(rebuilt);
      for (const [i, { manifest, failed }] of after.entries()) {
        expect(manifest.generation).toBe(before[i]!.manifest.generation + 1);
        expect(failed).toEqual([]);
      }
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    /** Kills the command so long after its first work on a run; whether it had not ended by then, and how long it took. */
    async function killAfter(dir: string, ms: number): Promise<{ landed: boolean; workMs: number }> {
      const journals = () =>
        Promise.all(runs.map((run) => stat(new Layout(dir).journalFile(run)).catch(() => null)));
      const born = (found: Awaited<ReturnType<typeof journals>>) =>
        found.map((one) => one && `${one.ino} ${one.birthtimeMs}`);
      const before = born(await journals());
      const running = start(command(dir), env);
      let hasEnded = false;
      const ended = running.finished.then(() => {
        hasEnded = true;
      });
      const hasBegun = async () => born(await journals()).some((one, i) => one !== null && one !== before[i]);
      while (!hasEnded && !(await hasBegun())) await sleep(1);
      const beganMs = performance.now();
      await Promise.race([sleep(ms, undefined, { ref: false }), ended]);
      const workMs = performance.now() - beganMs;
      running.child.kill("SIGKILL");
      const { status, stderr } = await running.finished;
      const landed = running.child.signalCode === "SIGKILL";
      expect({ status, stderr }).toMatchObject({ status: landed ? null : 0 });
      return { landed, workMs };
    }

    /** Each run is whole as it was, or as it is to be; which of the two, run by run. */
    async function expectOldOrNew(dir: string): Promise<boolean[]> {
      const shown = await shownIn(dir);
      const isNew = shown.map(({ manifest }, i) => manifest.generation !== before[i]!.manifest.generation);
      for (const [i, one] of shown.entries()) {
        const same = isNew[i] ? after[i]! : before[i]!;
        expect({ ...one, manifest: timeless(one.manifest) }).toEqual({
          ...same,
          manifest: timeless(same.manifest),
        });
      }
      const hashes = new Set([...before, ...shown].flatMap(linkedHashes));
      for (const file of await filesBelow(join(dir, "tables"))) {
        const bytes = await readFile(file);
        expect(hashes).toContain(createHash("sha256").update(bytes).digest("hex"));
      }
      return isNew;
    }

    it(`are those of an undisturbed rebuild after it was killed at ${wanted} random moments`, async () => {
      const random = randomFrom(`${trialSeed} ${name}`);
      const found = { old: 0, between: 0, new: 0 };
      let landed = 0;
      for (let tries = 0; landed < wanted && tries < 5 * wanted; ) {
        const dir = join(folder, `killed-${tries}`);
        await cp(pristine, dir, { recursive: true });
        // three in a row, so that beginning anew is interrupted, too
        for (let i = 0; i < 3 && landed < wanted; i++, tries++) {
          const killed = await killAfter(dir, (jobMs * random.below(1000)) / 1000);
          if (!killed.landed) break;
          landed++;
          const isNew = await expectOldOrNew(dir);
          found[isNew.every((one) => one) ? "new" : isNew.some((one) => one) ? "between" : "old"]++;
        }
        expect(await runInside(command(dir), { env })).toMatchObject({ status: 0 });
        expect(await expectOldOrNew(dir)).toEqual(runs.map(() => true));
        const archive = await openArchive(dir);
        const { equal, runs: compared } = await diffArchives(await openArchive(rebuilt), archive);
        expect(equal, JSON.stringify(compared)).toBe(true);
        for (const run of runs) {
          const { checks } = await verifyRun(archive, run, { deep: true, duckdb: sharedDuckDB });
          expect(checks.filter(({ ok }) => !ok)).toEqual([]);
          const manifest = (await archive.manifest(run))!;
          const former = (manifest.former ?? []).filter((file) => file.folder === "data");
          expect((await filesBelow(archive.layout.dataDir(run))).length).toBe(
            filesOf(manifest).data.size + former.length,
          );
        }
        for (const left of ["pending", "staging", "jobs"])
          expect(await filesBelow(join(dir, left))).toEqual([]);
        await rm(dir, { recursive: true });
      }
      expect(landed).toBe(wanted);
      console.log(
        `${name}: killed ${landed} times (${JSON.stringify(found)}), a whole job works ${Math.round(jobMs)} ms`,
      );
    }, 3_600_000);
  },
);
