import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import {
  archiveSteps,
  exportSteps,
  garbageSteps,
  jobSteps,
  type KillAt,
  KillDriver,
  KillWorld,
  profileSteps,
  rebuildSteps,
  removeSteps,
  stepOf,
} from "../fixtures/command/kill-driver.ts";
import type { LoggedGateway } from "../fixtures/command/logged-gateway.ts";
import { inProject } from "../fixtures/command/project.ts";
import { diskFolderVariable } from "../fixtures/command/scratch.ts";

/** Kinds of gateway, each of which makes a job come to other steps. */
const kinds = {
  counted: { options: {}, status: 0 },
  literal: { options: { literal: true }, status: 0 },
  malformed: { options: { faults: ["malformed@fills:30"], transport: "rest" }, status: 4 },
} as const;
type Kind = keyof typeof kinds;

/** What one archive goes through, kill after kill, before it is let end. */
const chains: readonly [Kind, readonly KillAt[]][] = [
  [
    "counted",
    [
      ...(["archive-file-written", "planned", "segment-written:2", "segment-renamed:3"] as const),
      ...(["segment-journalled:4", "converted", "parquet-renamed:2", "parquet-journalled"] as const),
      ...([
        "certified",
        "commit-moved-one:3",
        "commit-moved",
        "manifest-written",
        "manifest-renamed",
      ] as const),
    ],
  ],
  [
    "counted",
    ["archive-file-written", "segment-journalled:7", "converted:2", "certified", "links-refreshed"],
  ],
  ["counted", ["planned", "segment-renamed:5", "parquet-renamed", "commit-moved", "pending-removed"]],
  ["counted", ["segment-written:9", "parquet-journalled:3", "commit-moved-one", "manifest-renamed"]],
  ["counted", ["manifest-written"]],
  ["counted", ["links-refreshed"]],
  ["counted", ["pending-removed"]],
  ["malformed", ["segment-journalled:6", "quarantine-journalled", "converted", "commit-moved"]],
  ["malformed", ["quarantine-journalled"]],
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
  it("are at every step that the source names", async () => {
    const src = inProject("src");
    const files = (await readdir(src, { recursive: true })).filter((file) => file.endsWith(".ts"));
    const texts = await Promise.all(files.map((file) => readFile(join(src, file), "utf8")));
    const named = texts.flatMap((text) =>
      [...text.matchAll(/\bstep(?:\?\.)?\(\s*"([a-z-]+)"/g)].map(([, step]) => step!),
    );
    const known = [
      ...archiveSteps,
      ...removeSteps,
      ...rebuildSteps,
      ...exportSteps,
      ...garbageSteps,
      ...jobSteps,
      ...profileSteps,
    ];
    expect([...new Set(named)].sort()).toEqual(known.sort());
  });

  it("are twice at each step of an archiving job", () => {
    const kills = chains.flatMap(([, at]) => at).map(stepOf);
    // what only happens to a run that was archived before: in kill-growing.test.ts
    const later = new Set<string>(["segments-dropped", "segment-split", "window-compared"]);
    for (const step of archiveSteps.filter((at) => !later.has(at)))
      expect(kills.filter((at) => at === step).length, step).toBeGreaterThan(1);
  });

  it("interrupt work in many slices and segments", async () => {
    for (const kind of Object.keys(kinds) as Kind[]) {
      const { tables } = (await undisturbed[kind].manifest(world.run))!;
      expect(Object.values(tables).flatMap(({ proven }) => proven?.segments ?? []).length).toBeGreaterThan(
        30,
      );
    }
  });
});

describe("killed at any step and started again, archive fetches no journalled window twice and ends in an equal archive", () => {
  const endsEqual = async (kind: Kind, steps: readonly KillAt[], dir: string) => {
    const driver = new KillDriver(world, gateways[kind], dir);
    await driver.killAtEach(steps, null, undefined, kinds[kind].status);
    await driver.expectEqualTo(undisturbed[kind]);
  };

  it.each(chains)(
    "with a %s gateway, at %s",
    async (kind, steps) => endsEqual(kind, steps, await world.archiveFolder()),
    400_000,
  );

  it("on a disk, where syncing is at work", async () => {
    const folder = await mkdtemp(join(process.env[diskFolderVariable]!, "runvault-kill-"));
    try {
      const steps = [
        "segment-journalled:4",
        "parquet-renamed",
        "manifest-written",
        "manifest-renamed",
      ] as const;
      await endsEqual("counted", steps, join(folder, "archive"));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
