import { rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { parseRun } from "../../src/model/run-argument.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { type Running, start } from "../fixtures/command/command-process.ts";
import { filesBelow, type KillAt, KillDriver, KillWorld } from "../fixtures/command/kill-driver.ts";
import type { LoggedGateway } from "../fixtures/command/logged-gateway.ts";

/** What a kill leaves is deleted from a folder, and how a job is stopped: over either transport what the other has not. */
const cases: Record<
  "rest" | "rpc",
  {
    readonly deleted: readonly (readonly [string, readonly KillAt[]])[];
    readonly signal: readonly [NodeJS.Signals, number];
  }
> = {
  rest: {
    deleted: [
      ["pending", ["segment-journalled:9", "parquet-journalled:2", "commit-moved-one:5", "commit-moved"]],
    ],
    signal: ["SIGINT", 130],
  },
  rpc: {
    deleted: [["staging", ["segment-written:4", "converted:2", "commit-moved-one:5", "manifest-renamed"]]],
    signal: ["SIGTERM", 143],
  },
};

describe.each(["rest", "rpc"] as const)("over %s", (transport) => {
  let world: KillWorld;
  let gateway: LoggedGateway;
  let undisturbed: Archive;
  beforeAll(async () => {
    world = await KillWorld.create({ rows: 1000 });
    gateway = await world.serve({ transport });
    const driver = new KillDriver(world, gateway, await world.archiveFolder());
    await driver.goOn();
    undisturbed = await openArchive(driver.dir);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const fresh = async () => new KillDriver(world, gateway, await world.archiveFolder());

  describe("what a kill leaves in the work folders", () => {
    it.each(cases[transport].deleted)(
      "may be deleted from %s/ at %s, which costs nothing but time",
      async (folder, steps) => {
        const driver = await fresh();
        await driver.killAtEach(steps, null, () =>
          rm(join(driver.dir, folder), { recursive: true, force: true }),
        );
        await driver.expectEqualTo(undisturbed);
      },
    );

    // the journal knows of no transport
    it.runIf(transport === "rpc")(
      "is taken as what is left of it: a journal cut short or damaged costs refetching, never rows",
      async () => {
        const driver = await fresh();
        const journal = driver.layout.journalFile(world.run);
        await driver.killAt("segment-journalled:9");
        await truncate(journal, (await stat(journal)).size - 7);
        await driver.killAt("segment-journalled:9");
        const [held] = await driver.journalled();
        await writeFile(join(driver.layout.pendingDir(world.run), held!.file), "not a segment");
        await driver.goOn();
        await driver.expectEqualTo(undisturbed);
      },
    );
  });

  describe("a signal", () => {
    afterEach(() => gateway.letGo());

    /** The command at work, with at least so many windows fetched, and a gateway that gives no more rows. */
    async function waiting(driver: KillDriver, windows: number): Promise<Running> {
      gateway.holdAfter(2 * windows);
      const running = driver.start();
      while ((await driver.journalled()).length < windows && running.child.exitCode === null) await sleep(20);
      return running;
    }

    it.each([cases[transport].signal])(
      "%s ends archive with %i, keeps what is fetched, and says how to go on",
      async (signal, status) => {
        const driver = await fresh();
        const running = await waiting(driver, 3);
        running.child.kill(signal);
        const { status: ended, stderr } = await running.finished;
        expect(ended).toBe(status);
        expect(stderr).toContain("Run the same command again: it continues from what is already fetched.");
        gateway.letGo();
        await gateway.quiet();
        const held = await driver.journalled();
        expect(held.length).toBeGreaterThan(2);
        const since = gateway.log.length;
        await driver.goOn();
        driver.expectNotAskedAgain(held, since);
        await driver.expectEqualTo(undisturbed);
      },
    );

    it.runIf(transport === "rest")(
      "that comes twice at once is one: archive stops in order, with the status of the first",
      async () => {
        const driver = await fresh();
        const running = await waiting(driver, 1);
        // stopped for a moment, so that both wait for it; which of two waiting signals comes first is the system's choice
        for (const signal of ["SIGSTOP", "SIGINT", "SIGTERM", "SIGCONT"] as const) running.child.kill(signal);
        const { status, stderr } = await running.finished;
        expect(status).toBe(stderr.includes("Stopping on SIGTERM") ? 143 : 130);
        expect(stderr).toContain(`interrupted: stopped by ${status === 143 ? "SIGTERM" : "SIGINT"}`);
        gateway.letGo();
        await gateway.quiet();
        await driver.goOn();
        await driver.expectEqualTo(undisturbed);
      },
    );
  });
});

describe("a killed rm", () => {
  it("has removed the run for readers, and the same command again removes the rest", async () => {
    await using world = await KillWorld.create({ rows: 300 });
    const made = new KillDriver(world, await world.serve(), await world.archiveFolder());
    await made.goOn();
    const { instanceId, runId } = world.run;
    const name = `${instanceId}/${runId}`;
    expect(parseRun(name)).toEqual(world.run);
    for (const at of ["remove-manifest", "remove-folder", "remove-folder:5"]) {
      const dir = await world.archiveFolder(made.dir);
      const rm = ["rm", name, "--archive", dir];
      const killed = start(rm, { RUNVAULT_KILL_AT: at });
      await killed.finished;
      expect(killed.child.signalCode).toBe("SIGKILL");
      const archive = await openArchive(dir);
      expect(await archive.manifest(world.run)).toBeNull();
      expect(await runInside(rm)).toMatchObject({ status: 0 });
      const left = (await filesBelow(dir)).filter((file) => !file.startsWith(join(dir, "locks")));
      expect(left).toEqual([archive.layout.archiveFile, archive.layout.sourcesFile]);
    }
  });
});
