import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { archiveSteps, type KillAt, KillDriver, KillWorld, stepOf } from "../fixtures/command/kill-driver.ts";
import type { LoggedGateway } from "../fixtures/command/logged-gateway.ts";
import { diskFolderVariable } from "../fixtures/command/scratch.ts";

/** Kinds of gateway, each of which makes a job come to other steps. */
const kinds = {
  counted: { options: {}, status: 0 },
  rpc: { options: { transport: "rpc" }, status: 0 },
  literal: { options: { literal: true }, status: 0 },
  malformed: { options: { faults: ["malformed@fills:30"], transport: "rest" }, status: 4 },
} as const;
type Kind = keyof typeof kinds;

/**
 * What one archive goes through, kill after kill, before it is let end. From "converted" on nothing knows of the transport:
 * test/system/kill-archive has the rest.
 */
const chains: readonly [Kind, readonly KillAt[]][] = [
  [
    "counted",
    [
      ...(["archive-file-written", "planned", "segment-written:2", "segment-renamed:5"] as const),
      ...(["segment-journalled:7", "converted", "parquet-renamed:2", "parquet-journalled:3"] as const),
    ],
  ],
  [
    "rpc",
    [
      ...(["archive-file-written", "planned", "segment-written:9", "segment-renamed:3"] as const),
      ...(["segment-journalled:4", "converted:2", "commit-moved"] as const),
    ],
  ],
  ["malformed", ["segment-journalled:6", "quarantine-journalled", "converted", "commit-moved"]],
  [
    "literal",
    [
      ...(["survey-journalled", "survey-journalled:3", "segment-journalled:2"] as const),
      ...(["parquet-journalled", "certified", "commit-moved-one:2"] as const),
    ],
  ],
];

let world: KillWorld;
const gateways = {} as Record<Kind, LoggedGateway>;
const undisturbed = {} as Record<Kind, Archive>;
beforeAll(async () => {
  world = await KillWorld.create({ rows: 900 });
  for (const kind of Object.keys(kinds) as Kind[]) {
    gateways[kind] = await world.serve(kinds[kind].options);
    const driver = new KillDriver(world, gateways[kind], await world.archiveFolder());
    await driver.goOn(kinds[kind].status);
    undisturbed[kind] = await openArchive(driver.dir);
  }
});
afterAll(() => world[Symbol.asyncDispose]());

describe("the kills", () => {
  it("are at each step before a commit, over RPC at each at which it fetches", () => {
    const kills = (of: readonly Kind[]) =>
      new Set(chains.flatMap(([kind, at]) => (of.includes(kind) ? at.map(stepOf) : [])));
    // what only happens to a run that was archived before: in kill-growing.test.ts
    const later = ["segments-dropped", "segment-split", "window-compared"];
    const ahead = archiveSteps.slice(0, archiveSteps.indexOf("certified"));
    const once = ahead.filter((step) => !later.includes(step));
    expect(once.filter((step) => !kills(Object.keys(kinds) as Kind[]).has(step))).toEqual([]);
    // there are always facts over RPC, and no line that is not a row
    const fetching = once.slice(0, once.indexOf("converted"));
    expect(fetching.filter((step) => !kills(["rpc"]).has(step))).toEqual([
      "survey-journalled",
      "quarantine-journalled",
    ]);
  });

  it("interrupt work in many slices and segments", async () => {
    for (const kind of Object.keys(kinds) as Kind[]) {
      const { tables } = (await undisturbed[kind].manifest(world.run))!;
      const segments = Object.values(tables).flatMap(({ proven }) => proven?.segments ?? []);
      expect(segments.length).toBeGreaterThan(30);
    }
  });
});

describe("killed at any step and started again, archive fetches no journalled window twice and ends in an equal archive", () => {
  const endsEqual = async (kind: Kind, steps: readonly KillAt[], dir: string) => {
    const driver = new KillDriver(world, gateways[kind], dir);
    await driver.killAtEach(steps, null, undefined, kinds[kind].status);
    await driver.expectEqualTo(undisturbed[kind]);
  };

  it.each(chains)("with a %s gateway, at %s", async (kind, steps) =>
    endsEqual(kind, steps, await world.archiveFolder()),
  );

  it("on a disk, where syncing is at work", async () => {
    const folder = await mkdtemp(join(process.env[diskFolderVariable]!, "runvault-kill-"));
    try {
      const steps = ["segment-journalled:4", "manifest-written", "manifest-renamed"] as const;
      await endsEqual("counted", steps, join(folder, "archive"));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
