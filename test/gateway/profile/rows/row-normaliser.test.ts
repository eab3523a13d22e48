import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { normaliseCarefully } from "../../../../src/gateway/profile/rows/careful-row.ts";
import { foreignRow } from "../../../../src/gateway/profile/rows/foreign-row.ts";
import { kernelProgram } from "../../../../src/gateway/profile/rows/kernel-program.ts";
import { kernelStop, RowKernel } from "../../../../src/gateway/profile/rows/row-kernel.ts";
import { RowNormaliser } from "../../../../src/gateway/profile/rows/row-normaliser.ts";
import { planRows } from "../../../../src/gateway/profile/rows/row-plan.ts";
import type { ColumnSource, RowMap } from "../../../../src/model/profile/row-map.ts";
import { tableNamed } from "../../../../src/model/profile/table.ts";
import { badRowLine, readBadRow } from "../../../../src/row/bad-row.ts";
import { foreignTables, numbersAsText, run, table } from "./foreign-rows.ts";

async function linesOf(normaliser: RowNormaliser, chunks: readonly Uint8Array[]): Promise<string> {
  async function* sent() {
    yield* chunks;
  }
  const out: Uint8Array[] = [];
  for await (const piece of normaliser.over(sent())) out.push(piece);
  return Buffer.concat(out).toString();
}

/** The bytes cut after each of some lengths. */
function cut(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let at = 0;
  for (let index = 0; at < bytes.byteLength; index++) {
    const end = at + lengths[index % lengths.length]!;
    chunks.push(bytes.subarray(at, end));
    at = end;
  }
  return chunks;
}

describe("rows of any map, in any spelling", () => {
  it("become the canonical lines that they mean, however they are cut, and their own rows again", async () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(foreignTables, cuts, async ({ map, rows }, lengths) => {
        const text = Buffer.from(rows.map(({ wire }) => `${wire}\n`).join(""));
        const lines = rows.map(({ line }) => `${line}\n`).join("");
        const normaliser = new RowNormaliser(table, map, run);
        expect(await linesOf(normaliser, cut(text, lengths))).toBe(lines);
        const plan = planRows(table, map, run);
        for (const { wire, line, back } of rows) {
          expect(normaliser.row(Buffer.from(wire)).toString()).toBe(`${line}\n`);
          expect(normaliseCarefully(plan, wire)).toMatchObject({ kind: "row", line });
          const again = foreignRow(table, map, line);
          expect(numbersAsText(again)).toEqual(numbersAsText(back));
          expect(normaliser.row(Buffer.from(again)).toString()).toBe(`${line}\n`);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("come to the same by the quick way and by the careful one where bytes of them are others", async () => {
    const odd = fc.constantFrom(
      ...'{}[]",:\\0123456789.eE+-/untfalsbrNI \t\r\u0000\u001f',
      "é",
      "\\ud800",
      "\\ud834\\udd1e",
      '""',
    );
    const edits = fc.array(
      fc.record({
        at: fc.nat(),
        length: fc.integer({ min: 0, max: 3 }),
        put: fc.oneof(
          odd.map((text) => Buffer.from(text)),
          fc.uint8Array({ maxLength: 2 }),
        ),
      }),
      { minLength: 1, maxLength: 3 },
    );
    await fc.assert(
      fc.asyncProperty(foreignTables, edits, async ({ map, rows }, changes) => {
        const normaliser = new RowNormaliser(table, map, run);
        const plan = planRows(table, map, run);
        for (const { wire } of rows) {
          let bytes = Buffer.from(wire);
          for (const { at, length, put } of changes) {
            const from = at % bytes.byteLength;
            bytes = Buffer.concat([bytes.subarray(0, from), put, bytes.subarray(from + length)]);
          }
          const line = Buffer.from(bytes.filter((byte) => byte !== 10));
          const text = line.toString();
          const made = Buffer.concat([normaliser.row(line)]);
          if (!Buffer.from(text).equals(line)) {
            // no UTF-8: what reads the lines later decides
            expect(made.equals(Buffer.concat([line, Buffer.from("\n")]))).toBe(true);
            continue;
          }
          if (/^[ \t\r]*$/.test(text)) continue;
          const careful = normaliseCarefully(plan, text);
          const expected = careful.kind === "row" ? careful.line : badRowLine(careful.row, careful.ts);
          expect(made.toString()).toBe(`${expected}\n`);
        }
      }),
      { numRuns: 500 },
    );
  });
});
