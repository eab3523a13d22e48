import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Conversion,
  type ConversionForm,
  convertSegments,
} from "../../src/archive/convert/convert-segments.ts";
import { duckDBConverter } from "../../src/archive/convert/duckdb-form.ts";
import { ParquetLook } from "../../src/archive/convert/parquet-look.ts";
import { literal, parquetRows } from "../../src/duckdb/sql.ts";
import { defaultExactTypes } from "../../src/model/profile/exact-types.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { rowHash } from "../../src/row/row-hash.ts";
import { ConvertFixture, instanceId, runId, sampleLine } from "../fixtures/archive/convert-fixture.ts";

const fills = tableNamed("fills");
const lines = [1, 2, 3].map((seq) => sampleLine(fills, { seq: String(seq), ts_event: String(seq) }));

let fixture: ConvertFixture;
beforeAll(async () => {
  fixture = await ConvertFixture.open();
});
afterAll(() => fixture[Symbol.asyncDispose]());

let made = 0;

/** A form that writes what DuckDB's does, but altered. */
function alteredForm(select: (rows: string) => string): ConversionForm {
  return {
    write: async (conversion) => {
      const right = join(fixture.dir, `right-${made++}.parquet`);
      await duckDBConverter(fixture.db.connection)({ ...conversion, out: right });
      await fixture.db.connection.run(
        `COPY (${select(parquetRows([right]))}) TO ${literal(conversion.out)} (FORMAT parquet)`,
      );
      return { kind: "written" };
    },
  };
}

async function convertBy(form: ConversionForm, more: Partial<Conversion> = {}) {
  const out = join(fixture.dir, `made-${made++}.parquet`);
  const conversion = {
    table: fills,
    instanceId,
    runId,
    segments: [await fixture.segment(lines.map((line) => `${line}\n`).join(""))],
    exactTypes: defaultExactTypes(fills),
    rowHash: await rowHash(lines),
    out,
    ...more,
  };
  try {
    return { ...(await convertSegments(form, new ParquetLook(fixture.db.connection), conversion)), out };
  } catch (error) {
    expect(existsSync(out)).toBe(false);
    throw error;
  }
}

describe("what another form of conversion gets wrong is found, and leaves no file", () => {
  it.each([
    ["a row left out", (rows: string) => `SELECT * FROM ${rows} WHERE seq <> 2`, "3 lines became 2 rows"],
    [
      "a row twice",
      (rows: string) => `SELECT * FROM ${rows} UNION ALL SELECT * FROM ${rows} WHERE seq = 3`,
      "3 lines became 4 rows",
    ],
    [
      "rows that are not sorted, even where that is asked for",
      (rows: string) => `SELECT * FROM ${rows} ORDER BY seq DESC`,
      /rows were not sorted at ts_event \d and seq \d/,
    ],
    [
      "a price that was rounded",
      (rows: string) => `SELECT * REPLACE (round(price) AS price) FROM ${rows}`,
      /the row hash of the lines is \d+, that of the rows \d+/,
    ],
  ])("%s", async (_, select, message) => {
    await expect(convertBy(alteredForm(select))).rejects.toThrow(message);
  });

  it("nothing, where it is right", async () => {
    const { rows, first, last, out } = await convertBy(alteredForm((all) => `SELECT * FROM ${all}`));
    expect({ rows, first, last }).toEqual({
      rows: 3,
      first: { ts: 1n, seq: 1n },
      last: { ts: 3n, seq: 3n },
    });
    expect(await fixture.lines(fills, out)).toEqual(lines);
  });
});

describe("a line that a form refuses is read by the strict reader", () => {
  const refusing = (line: string): ConversionForm => ({
    write: async () => ({ kind: "refused", line, file: "seg" }),
  });

  it.each([
    ["one that is no row", "{}", "malformed_row"],
    ["one of another run", sampleLine(fills, { run_id: "other" }), "history_identity_conflict"],
    ["one that does not fit its column", sampleLine(fills, { price: "1.0000000001" }), "value_out_of_range"],
    [
      "one that is good: it is refused once more, and left to the line-by-line path",
      lines[0]!,
      "malformed_row",
    ],
  ])("%s", async (_, line, code) => {
    await expect(convertBy(refusing(line))).rejects.toMatchObject({ code, place: { file: "seg" } });
  });
});
