import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { parseRun } from "../../src/cli/run-argument.ts";
import { run as runCommand, start } from "../fixtures/command/command-process.ts";
import {
  filesBelow,
  type KillAt,
  KillDriver,
  KillWorld,
  type LoggedGateway,
} from "../fixtures/command/kill-driver.ts";

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

  const fresh = async (...settings: string[]) =>
    new KillDriver(world, gateway, await world.archiveFolder(), settings);

  describe("what a kill leaves in the work folders", () => {
    const cases: readonly [string, KillAt[]][] = [
      ["pending", ["segment-journalled:9", "parquet-journalled:2", "commit-moved-one:5", "commit-moved"]],
      ["pending", ["manifest-renamed"]],
      ["staging", ["segment-written:4", "converted:2", "commit-moved-one:5", "links-refreshed"]],
    ];
    it.each(cases)("may be deleted from %s/ at %s, which costs nothing but time", async (folder, steps) => {
      const driver = await fresh();
      await driver.killAtEach(steps, null, () =>
        rm(join(driver.dir, folder), { recursive: true, force: true }),
      );
      await driver.expectEqualTo(undisturbed);
    });

    it("is taken as what is left of it: a journal cut short or damaged costs refetching, never rows", async () => {
      const { truncate, stat, writeFile } = await import("node:fs/promises");
      const driver = await fresh();
      const journal = driver.layout.journalFile(world.run);
      await driver.killAt("segment-journalled:9");
      await truncate(journal, (await stat(journal)).size - 7);
      await driver.killAt("segment-journalled:9");
      const [held] = await driver.journalled();
      await writeFile(join(driver.layout.pendingDir(world.run), held!.file), "not a segment");
      await driver.goOn();
      await driver.expectEqualTo(undisturbed);
    });
  });

  describe("a signal", () => {
    it.each([
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const)(
      "%s ends archive with %i, keeps what is fetched, and says how to go on",
      async (signal, status) => {
        const driver = await fresh("--max-rps", "15");
        const running = driver.start();
        while ((await driver.journalled()).length < 3 && running.child.exitCode === null)
          await new Promise((wait) => setTimeout(wait, 20));
        running.child.kill(signal);
        const { status: ended, stderr } = await running.finished;
        expect(ended).toBe(status);
        expect(stderr).toContain("Run the same command again: it goes on from what is already fetched.");
        await gateway.quiet();
        const held = await driver.journalled();
        expect(held.length).toBeGreaterThan(2);
        const since = gateway.log.length;
        const again = new KillDriver(world, gateway, driver.dir);
        await again.goOn();
        again.expectNotAskedAgain(held, since);
        await again.expectEqualTo(undisturbed);
      },
    );

    it("that comes a second time ends archive at once, with the second's status", async () => {
      const driver = await fresh("--max-rps", "15");
      const running = driver.start();
      while ((await driver.journalled()).length < 1 && running.child.exitCode === null)
        await new Promise((wait) => setTimeout(wait, 20));
      // stopped for a moment, so that both wait for it; which of two waiting signals comes first is the system's choice
      for (const signal of ["SIGSTOP", "SIGINT", "SIGTERM", "SIGCONT"] as const) running.child.kill(signal);
      const { status, stderr } = await running.finished;
      const first = /^(SIGINT|SIGTERM): stopping; once more stops at once\./m.exec(stderr)?.[1];
      expect(first).toBeDefined();
      expect(status).toBe(first === "SIGINT" ? 143 : 130);
      expect(stderr).not.toContain("interrupted:");
    });
  });

  describe("a killed rm", () => {
    it("has removed the run for readers, and the same command again removes the rest", async () => {
      const { instanceId, runId } = world.run;
      const name = `${instanceId}/${runId}`;
      expect(parseRun(name)).toEqual(world.run);
      for (const at of ["remove-manifest", "remove-folder", "remove-folder:5", "remove-manifest"]) {
        const dir = await world.archiveFolder(undisturbed.dir);
        const killed = start(["rm", name, "--archive", dir], { RUNVAULT_KILL_AT: at });
        await killed.finished;
        expect(killed.child.signalCode).toBe("SIGKILL");
        const archive = await openArchive(dir);
        expect(await archive.manifest(world.run)).toBeNull();
        expect(await runCommand(["rm", name, "--archive", dir])).toMatchObject({ status: 0 });
        const left = (await filesBelow(dir)).filter((file) => !file.startsWith(join(dir, "locks")));
        expect(left).toEqual([archive.layout.archiveFile]);
      }
    });
  });
});
