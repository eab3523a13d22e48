import { expect, it } from "vitest";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource } from "../fixtures/source/array-source.ts";

const rows = world({ fills: hours(40) }).get("fills")!;
/** A row that cannot be stored: its price is a number. */
const bend = (row: ArrayRow, price = 5) => ({
  ...row,
  line: row.line.replace(/"price":"[^"]*"/, `"price":${price}`),
});
const bent = rows.with(7, bend(rows[7]!));

/** An archive of the run while it grew, with the operator's word for the rows set aside. */
async function accepted(): Promise<{ tables: TableWorld; source: ArraySource }> {
  const tables = await TableWorld.create();
  const source = new ArraySource(run, new Map([["fills", bent.slice(0, 20)]]), { final: false });
  const settings = { acceptQuarantine: true };
  expect((await tables.archiveRun(source, { settings })).manifest.state).toBe("OPEN");
  source.tables.set("fills", bent);
  source.manners = {};
  return { tables, source };
}

it("the operator's word for rows set aside outlasts the final pass, another version, and --recheck", async () => {
  const { tables, source } = await accepted();
  await using _ = tables;
  for (const { version, recheckBefore } of [
    { version: "1", recheckBefore: null },
    { version: "2", recheckBefore: null },
    { version: "2", recheckBefore: at(2_000_000) },
  ]) {
    source.storageVersion = version;
    const { manifest, changed } = await tables.archiveRun(source, { settings: { recheckBefore } });
    expect([manifest.state, changed]).toEqual(["COMPLETE", true]);
    const { certificate } = manifest.tables.fills!.proven!;
    expect(certificate).toMatchObject({ rows: 39, quarantined: 1, quarantineAccepted: true });
  }
  await tables.expectRows("fills", rows.toSpliced(7, 1));
});

it.each([
  ["another row", bent.with(9, bend(rows[9]!)), 2],
  ["the same row, changed", bent.with(7, bend(rows[7]!, 6)), 1],
])("it does not hold for %s", async (_, changed, quarantined) => {
  const { tables, source } = await accepted();
  await using __ = tables;
  source.tables.set("fills", changed);
  const { fills } = (await tables.archiveRun(source)).manifest.tables;
  expect(fills).toMatchObject({
    state: "QUARANTINED",
    proven: { state: "OPEN" },
    attempt: { holding: { certificate: { quarantined, quarantineAccepted: false } } },
  });
});
