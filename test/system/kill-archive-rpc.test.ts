import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { archiveSteps, type KillAt, KillDriver, KillWorld, stepOf } from "../fixtures/command/kill-driver.ts";
import type { LoggedGateway } from "../fixtures/command/logged-gateway.ts";

/** What one archive goes through, kill after kill, before it is let end. */
const chains: readonly (readonly KillAt[])[] = [
  [
    ...(["archive-file-written", "planned", "segment-written:2", "segment-renamed:3"] as const),
    ...(["segment-journalled:4", "converted", "parquet-renamed:2", "parquet-journalled"] as const),
    ...(["certified", "commit-moved-one:3", "commit-moved", "manifest-written"] as const),
    "manifest-renamed",
  ],
  [
    ...(["archive-file-written", "planned", "segment-written:9", "segment-renamed:5"] as const),
    ...(["segment-journalled:7", "converted:2", "parquet-renamed", "parquet-journalled:3"] as const),
    ...(["certified", "commit-moved-one", "commit-moved", "manifest-written", "links-refreshed"] as const),
  ],
  ["manifest-renamed"],
  ["links-refreshed"],
  ["pending-removed"],
  ["segment-journalled:12", "pending-removed"],
];

let world: KillWorld;
let gateway: LoggedGateway;
let undisturbed: Archive;
beforeAll(async () => {
  world = await KillWorld.create({ rows: 900 });
  gateway = await world.serve({ transport: "rpc" });
  const driver = new KillDriver(world, gateway, await world.archiveFolder());
  await driver.goOn();
  undisturbed = await openArchive(driver.dir);
});
afterAll(() => world[Symbol.asyncDispose]());

describe("the kills over RPC", () => {
  it("are twice at each step that a job comes to there", () => {
    const kills = chains.flat().map(stepOf);
    // there are always facts over RPC, and no line that is not a row; what befalls held windows is in kill-growing.test.ts
    const held = ["segments-dropped", "segment-split", "window-compared"];
    const elsewhere = new Set<string>([...held, "survey-journalled", "quarantine-journalled"]);
    for (const step of archiveSteps.filter((at) => !elsewhere.has(at)))
      expect(kills.filter((at) => at === step).length, step).toBeGreaterThan(1);
  });

  it("interrupt work in many slices and segments", async () => {
    const { tables } = (await undisturbed.manifest(world.run))!;
    expect(Object.values(tables).flatMap(({ proven }) => proven!.segments).length).toBeGreaterThan(30);
  });
});

describe("killed at any step and started again, archive fetches no journalled window twice and ends in an equal archive", () => {
  it.each(chains.map((steps) => [steps]))(
    "over RPC, at %s",
    async (steps) => {
      const driver = new KillDriver(world, gateway, await world.archiveFolder());
      await driver.killAtEach(steps);
      await driver.expectEqualTo(undisturbed);
    },
    400_000,
  );
});
