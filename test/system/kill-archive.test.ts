import { readdir, readFile } from "node:fs/promises";
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

/** What one archive goes through, kill after kill, before it is let end; the other steps are in test/all/kill-archive. */
const chains: readonly (readonly KillAt[])[] = [
  [
    ...(["segment-journalled:4", "parquet-journalled", "certified", "commit-moved-one:3"] as const),
    ...(["commit-moved", "manifest-written", "manifest-renamed"] as const),
  ],
  ["links-refreshed"],
  ["pending-removed"],
];

// as many as a commit needs to be one of several tables
const tables = ["--tables", "fills,orders,bars"];

let world: KillWorld;
let gateway: LoggedGateway;
let undisturbed: Archive;
beforeAll(async () => {
  world = await KillWorld.create({ rows: 900 });
  gateway = await world.serve();
  const driver = await fresh();
  await driver.goOn();
  undisturbed = await openArchive(driver.dir);
});
afterAll(() => world[Symbol.asyncDispose]());

const fresh = async () => new KillDriver(world, gateway, await world.archiveFolder(), tables);

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

  it("are at each step of a commit", () => {
    const kills = new Set(chains.flat().map(stepOf));
    for (const step of archiveSteps.slice(archiveSteps.indexOf("certified"))) expect(kills).toContain(step);
  });

  it("interrupt work in many slices and segments", async () => {
    const { tables } = (await undisturbed.manifest(world.run))!;
    const segments = Object.values(tables).flatMap(({ proven }) => proven?.segments ?? []);
    expect(segments.length).toBeGreaterThan(10);
  });
});

it.each(chains.map((steps) => [steps]))(
  "killed at %s and started again, archive fetches no journalled window twice and ends in an equal archive",
  async (steps) => {
    const driver = await fresh();
    await driver.killAtEach(steps);
    await driver.expectEqualTo(undisturbed);
  },
);
