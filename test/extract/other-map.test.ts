import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { latestView } from "../../src/archive/manifest/table-view.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { identityMap } from "../../src/model/profile/identity-map.ts";
import { type RowMap, rowMapFingerprint } from "../../src/model/profile/row-map.ts";
import { tableNamed, tableNames } from "../../src/model/profile/table.ts";
import { usualTraits } from "../../src/model/route-traits.ts";
import { hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { ForeignSource } from "../fixtures/source/foreign-source.ts";

const identity = identityMap(tableNamed("fills"));
const constant: RowMap = {
  ...identity,
  columns: { ...identity.columns, portfolio: { kind: "constant", text: "main" } },
};
const rows = world({ fills: hours(40) });
const texts = rows.get("fills")!.map(({ line }) => line);

let place: TableWorld;
beforeEach(async () => {
  place = await TableWorld.create();
});
afterEach(() => place[Symbol.asyncDispose]());

const differs = { code: "profile_differs", place: { table: "fills" } };

describe("rows that came through one map", () => {
  test("say so in the manifest, and are not added to through another, nor by the contract", async () => {
    const source = new ForeignSource(run, "fills", texts, constant);
    const { manifest } = await place.archiveRun(source);
    const { through } = latestView(manifest.tables.fills!);
    expect(through).toMatchObject({ profile: "acme", fingerprint: rowMapFingerprint(constant) });
    expect((await place.archiveRun(source)).changed).toBe(false);
    const other = new ForeignSource(run, "fills", texts, { ...constant, numbers: "exact" });
    await expect(place.archiveRun(other)).rejects.toMatchObject(differs);
    await expect(place.archiveRun(new ArraySource(run, rows))).rejects.toMatchObject(differs);
    expect((await place.archive.manifest(run))!.generation).toBe(1);
  });

  test("are those of the contract where the map changes nothing", async () => {
    await place.archiveRun(new ForeignSource(run, "fills", texts, identity));
    const { manifest } = await place.archiveRun(new ArraySource(run, rows));
    expect(manifest.state).toBe("COMPLETE");
  });

  test("are not gone on with through another where a job was killed", async () => {
    await place.archiveUntil(new ForeignSource(run, "fills", texts, constant), "segment-journalled", 2);
    await expect(place.archiveRun(new ArraySource(run, rows))).rejects.toMatchObject({
      ...differs,
      hint: expect.stringContaining("the profile that it began with"),
    });
    const { manifest, resumedSegments } = await place.archiveRun(
      new ForeignSource(run, "fills", texts, constant),
    );
    expect({ state: manifest.state, resumed: resumedSegments > 0 }).toEqual({
      state: "COMPLETE",
      resumed: true,
    });
  });

  test("say nothing of those that come through another, where a job was killed that had looked over them alone", async () => {
    const literal = { literal: true };
    const before = Object.assign(new ArraySource(run, rows, literal), {
      traits: () => ({ ...usualTraits, map: constant, profile: "acme" }),
    });
    const seen = () =>
      new SeenSource({ routes: [...tableNames], empty: {}, largest: { rows: 10_000, bytes: 10_000_000 } });
    const killed = place.archiveRun(before, {
      seen: seen(),
      step: (name) => {
        if (name === "survey-journalled") throw new Error("killed");
      },
    });
    await expect(killed).rejects.toThrow("killed");
    const now = new ArraySource(run, new Map([["fills", repriced(rows.get("fills")!)]]), literal);
    const { manifest } = await place.archiveRun(now, { seen: seen() });
    expect(manifest.tables.fills!.attempt.error).toBeNull();
    expect(manifest.state).toBe("COMPLETE");
  });
});
