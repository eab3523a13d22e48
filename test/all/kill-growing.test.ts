import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { type KillAt, KillDriver, KillWorld } from "../fixtures/command/kill-driver.ts";
import type { LoggedGateway } from "../fixtures/command/logged-gateway.ts";

/** What one archive goes through, kill after kill, before it is let end: over either transport what the other has not. */
const kills: Record<
  "rest" | "rpc",
  { readonly chains: readonly (readonly KillAt[])[]; readonly pass: readonly KillAt[] }
> = {
  rest: {
    chains: [
      [
        ...(["planned", "segments-dropped", "segment-journalled:3", "parquet-journalled"] as const),
        ...(["commit-moved-one:70", "commit-moved", "manifest-written"] as const),
      ],
    ],
    pass: ["window-compared", "window-compared:2"],
  },
  rpc: {
    chains: [["segments-dropped", "converted:2", "parquet-journalled:2", "links-refreshed"]],
    pass: ["window-compared:3", "converted"],
  },
};

describe.each(["rest", "rpc"] as const)("over %s", (transport) => {
  let world: KillWorld;
  let gateway: LoggedGateway;
  let first: { dir: string; manifest: Manifest; fills: string };
  let second: { archive: Archive; fills: string };

  beforeAll(async () => {
    world = await KillWorld.create({ growing: true, failed: 0 });
    const { started, ended } = world.simulator.span(world.run);
    gateway = await world.serve({ transport });
    // rows of two tables are on their way then
    world.now = started + ((ended - started) * 61n) / 100n;
    const driver = new KillDriver(world, gateway, await world.archiveFolder());
    await driver.goOn();
    const manifest = (await driver.manifest())!;
    first = { dir: driver.dir, manifest, fills: await fillsIn(driver.dir) };
    world.now = started + ((ended - started) * 83n) / 100n;
    const undisturbed = new KillDriver(world, gateway, await world.archiveFolder(first.dir));
    await undisturbed.goOn();
    second = { archive: await openArchive(undisturbed.dir), fills: await fillsIn(undisturbed.dir) };
  });
  afterAll(() => world[Symbol.asyncDispose]());

  /** What a reader gets: rows, and a sum that depends on each of them. */
  async function fillsIn(dir: string): Promise<string> {
    const tables = ["fills", "orders", "factors"].map(
      (table) =>
        `SELECT '${table}' AS t, count(*) AS rows, sum(seq) AS seqs, max(ts_event) AS last FROM ${table}`,
    );
    const sql = `${tables.join(" UNION ALL ")} ORDER BY t`;
    const { status, stdout, stderr } = await runInside(["query", "--archive", dir, "-f", "csv", sql]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    return stdout;
  }

  describe("the second archive of a run that goes on", () => {
    it("begins at an OPEN first one, moves the horizon, and replaces windows that late rows fell into", async () => {
      const after = (await second.archive.manifest(world.run))!;
      expect(first.manifest).toMatchObject({ state: "OPEN", generation: 1 });
      expect(after).toMatchObject({ state: "OPEN", generation: 2 });
      expect(BigInt(after.horizon!)).toBeGreaterThan(BigInt(first.manifest.horizon!));
      const kept = new Set(
        Object.values(after.tables).flatMap(({ proven }) => proven!.segments.map((s) => s.file)),
      );
      const of = (manifest: Manifest) =>
        Object.values(manifest.tables).flatMap(({ proven }) => proven!.segments);
      const replaced = of(first.manifest).filter(({ file }) => !kept.has(file));
      expect(replaced.length).toBeGreaterThan(0);
      expect(replaced.length).toBeLessThan(of(first.manifest).length / 2);
      expect(second.fills).not.toBe(first.fills);
    });

    it.each(kills[transport].chains.map((steps) => [steps]))(
      "killed at %s, shows readers the first generation or the second, and ends as an undisturbed one",
      async (steps) => {
        const driver = new KillDriver(world, gateway, await world.archiveFolder(first.dir));
        await driver.killAtEach(steps, first.manifest, async (at) => {
          const after = at === "manifest-renamed" || at === "links-refreshed";
          expect(await fillsIn(driver.dir)).toBe(after ? second.fills : first.fills);
        });
        await driver.expectEqualTo(second.archive);
      },
    );
  });

  describe("the pass over a run that ended", () => {
    it.each([[kills[transport].pass]])(
      "killed at %s, goes on where it was, and ends as an undisturbed one",
      async (steps) => {
        world.now = world.simulator.span(world.run).ended + 7_200_000_000_000n;
        const undisturbed = new KillDriver(world, gateway, await world.archiveFolder(first.dir));
        await undisturbed.goOn();
        expect(await undisturbed.manifest()).toMatchObject({ state: "COMPLETE" });
        const driver = new KillDriver(world, gateway, await world.archiveFolder(first.dir));
        let compared = 0;
        for (const step of steps) {
          const since = gateway.log.length;
          const before = await driver.compared(first.manifest);
          await driver.killAt(step);
          expect(await driver.readersSeeOneGeneration(first.manifest)).toBe("before");
          driver.expectNotAskedAgain(before, since);
          compared = (await driver.compared(first.manifest)).length;
          expect(compared).toBeGreaterThan(before.length - 1);
        }
        expect(compared).toBeGreaterThan(0);
        await driver.goOn();
        await driver.expectEqualTo(await openArchive(undisturbed.dir));
      },
    );
  });

  // what splits a segment knows of no transport
  describe.runIf(transport === "rest")(
    "an archive of a run of which the gateway no longer keeps the beginning",
    () => {
      afterEach(() => {
        gateway.keepsFrom = 0n;
      });

      it("killed where a segment is split, keeps every row, and ends as an undisturbed one", async () => {
        const { started, ended } = world.simulator.span(world.run);
        world.now = started + ((ended - started) * 83n) / 100n;
        gateway.keepsFrom = started + ((ended - started) * 30n) / 100n;
        const undisturbed = new KillDriver(world, gateway, await world.archiveFolder(first.dir));
        await undisturbed.goOn();
        const driver = new KillDriver(world, gateway, await world.archiveFolder(first.dir));
        await driver.killAtEach(["segment-split", "segment-split:2", "parquet-journalled"], first.manifest);
        await driver.expectEqualTo(await openArchive(undisturbed.dir));
        // what is gone there is kept here
        expect(await fillsIn(driver.dir)).toBe(second.fills);
      });
    },
  );
});
