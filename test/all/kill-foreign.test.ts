import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { diffArchives } from "../../src/archive/diff/diff.ts";
import { verifyRun } from "../../src/archive/verify/verify.ts";
import { randomFrom } from "../../src/simulator/world/random.ts";
import { segmentLines } from "../fixtures/archive/archived-lines.ts";
import { type Finished, type Running, start } from "../fixtures/command/command-process.ts";
import { filesBelow, timeless } from "../fixtures/command/kill-driver.ts";
import { CorvidBench, ForeignBench, withoutExtra } from "../fixtures/foreign/foreign-bench.ts";
import { type DialectName, dialects } from "../fixtures/foreign/foreign-gateways.ts";
import { judged } from "../fixtures/foreign/foreign-truth.ts";
import { trialCount, trialSeed } from "../fixtures/trials/trials.ts";

/** Over two gateways; more are over all of them. */
const kills = trialCount(6);
const names = kills > 6 ? ([...Object.keys(dialects), "corvid"] as const) : (["acme", "epsilon"] as const);

/** `archive --profile` on one archive, again and again. */
class ForeignDriver {
  readonly bench: ForeignBench | CorvidBench;
  readonly dir: string;

  constructor(bench: ForeignBench | CorvidBench, dir: string) {
    this.bench = bench;
    this.dir = dir;
  }

  start(): Running {
    const { url, profile } = this.bench.asked;
    return start(
      [
        ...["archive", `${judged.instanceId}/${judged.runId}`, "--archive", this.dir, "--profile", profile],
        // answers of a few rows, so that there is much to go on with
        ...["--gateway", url, "--settle", "1ms", "--segment-bytes", "2000", "--slice-rows", "10"],
      ],
      { ACME_CLIENT: "runvault-tests" },
    );
  }

  /** Kills it so long after its first request; whether it had not ended by then, and how long it took. */
  async killAfter(ms: number): Promise<{ landed: boolean; tookMs: number; finished: Finished }> {
    const answered = this.bench.answered();
    const running = this.start();
    await Promise.race([answered, running.finished]);
    const beganMs = performance.now();
    await Promise.race([sleep(ms, undefined, { ref: false }), running.finished]);
    const tookMs = performance.now() - beganMs;
    running.child.kill("SIGKILL");
    const finished = await running.finished;
    return { landed: running.child.signalCode === "SIGKILL", tookMs, finished };
  }

  /** The same lines, windows and segments as an undisturbed archive has, all true; nothing left over. */
  async expectEqualTo(undisturbed: Archive): Promise<void> {
    const archive = await openArchive(this.dir);
    const manifest = await archive.manifest(judged);
    // what is proven of a run that goes on reaches up to the moment of its job
    if (manifest?.state !== "OPEN") {
      const { equal, runs } = await diffArchives(undisturbed, archive);
      expect(equal, JSON.stringify(runs)).toBe(true);
      expect(timeless(manifest!)).toEqual(timeless((await undisturbed.manifest(judged))!));
    }
    for (const table of this.bench.tables) {
      expect(manifest!.tables[table]!.state).toBe(manifest!.state);
      const lines = await segmentLines(archive, judged, table);
      expect(lines.map((line) => withoutExtra(line, table))).toEqual(this.bench.truth(table));
    }
    const { checks } = await verifyRun(archive, judged, { deep: true });
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(await filesBelow(archive.layout.pendingDir(judged))).toEqual([]);
    expect(await filesBelow(archive.layout.stagingDir(judged))).toEqual([]);
  }
}

describe.each(names)("%s", (name) => {
  const wanted = Math.ceil(kills / names.length);
  it(`killed at ${wanted} random moments, archive --profile ends in the archive of one that nobody disturbed`, async () => {
    const random = randomFrom(`${trialSeed} ${name}`);
    const folder = await mkdtemp(join(tmpdir(), "runvault-kill-foreign-"));
    await using bench = await (name === "corvid"
      ? CorvidBench.open()
      : ForeignBench.open(name as DialectName));
    try {
      const whole = new ForeignDriver(bench, join(folder, "undisturbed"));
      const first = await whole.killAfter(2 ** 31 - 1);
      expect(first.finished).toMatchObject({ status: 0 });
      let jobMs = first.tookMs;
      const undisturbed = await openArchive(whole.dir);
      expect((await undisturbed.manifest(judged))!.state).toBe(name === "dahlia" ? "OPEN" : "COMPLETE");
      await whole.expectEqualTo(undisturbed);
      let landed = 0;
      for (let tries = 0; landed < wanted && tries < 5 * wanted; ) {
        const driver = new ForeignDriver(bench, join(folder, `killed-${tries}`));
        // three in a row, so that going on is interrupted, too; what is done is not done again
        let left = 1;
        for (let i = 0; i < 3 && landed < wanted; i++, tries++) {
          const moment = (left * random.below(1000)) / 1000;
          const killed = await driver.killAfter(moment * jobMs);
          if (!killed.landed) {
            if (i === 0) jobMs = killed.tookMs;
            break;
          }
          left -= moment;
          landed++;
        }
        expect(await driver.start().finished).toMatchObject({ status: 0 });
        await driver.expectEqualTo(undisturbed);
        await rm(driver.dir, { recursive: true });
      }
      expect(landed).toBe(wanted);
      console.log(`${name}: killed ${landed} times, a whole job takes ${Math.round(jobMs)} ms`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }, 3_600_000);
});
