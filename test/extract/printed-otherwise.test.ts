// @module-tag slow
import { describe, expect, it } from "vitest";
import type { RowRequest } from "../../src/model/source.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners } from "../fixtures/source/array-source.ts";

/** Rows in memory that each answer prints in its own way. */
class PrintedSource extends ArraySource {
  readonly #print: (row: ArrayRow, answer: number, i: number) => ArrayRow;

  constructor(
    rows: readonly ArrayRow[],
    print: (row: ArrayRow, answer: number, i: number) => ArrayRow,
    manners: Manners,
  ) {
    super(run, new Map([["fills", [...rows]]]), { literal: true, ...manners });
    this.#print = print;
  }

  override async *rows(request: RowRequest): AsyncIterable<Uint8Array> {
    const all = this.tables.get("fills")!;
    const answer = this.asked.length;
    this.tables.set(
      "fills",
      all.map((row, i) => this.#print(row, answer, i)),
    );
    try {
      yield* super.rows(request);
    } finally {
      this.tables.set("fills", all);
    }
  }
}

const rows = world({ fills: hours(30) }).get("fills")!;

/** Another order of keys for each row of each answer. */
function shuffled(row: ArrayRow, answer: number, i: number): ArrayRow {
  const members = Object.entries(JSON.parse(row.line) as object);
  const from = (answer * 7 + i * 3) % members.length;
  return {
    ...row,
    line: JSON.stringify(Object.fromEntries([...members.slice(from), ...members.slice(0, from)])),
  };
}

/** Every second answer is of a node that prints a zero more. */
const spelled = (row: ArrayRow, answer: number): ArrayRow =>
  answer % 2 === 0 ? row : { ...row, line: row.line.replace(/"price":"([\d.]+)"/, '"price":"$10"') };

const kinds = [
  ["keys in another order in each row of each answer", shuffled],
  ["decimals with another number of zeros from each node", spelled],
] as const;

describe.each(kinds)("a gateway without facts that prints %s", (_, print) => {
  // caught by: two passes compared by their bytes alone
  it("is archived without an alarm, and again when the run went on", async () => {
    await using tables = await TableWorld.create();
    for (const [count, final] of [
      [20, false],
      [25, false],
      [30, true],
    ] as const) {
      const source = new PrintedSource(rows.slice(0, count), print, {
        final,
        times: { started: at(0), ended: at(29) },
      });
      const { manifest } = await tables.archiveRun(source);
      expect(manifest.tables.fills).toMatchObject({
        state: final ? "COMPLETE" : "OPEN",
        attempt: { outcome: "ok" },
        proven: { certificate: { proof: "exhausted", rows: final ? count : expect.any(Number) } },
      });
    }
  });

  // caught by: held rows that are fetched again, and told as changed, because they are printed otherwise
  it("keeps what is here by the final pass where rows are counted", async () => {
    await using tables = await TableWorld.create();
    const times = { started: at(0), ended: at(29) };
    const segments = async (final: boolean) => {
      const source = new PrintedSource(rows, print, { literal: false, final, times });
      const { proven, attempt } = (await tables.archiveRun(source)).manifest.tables.fills!;
      expect(attempt.outcome).toBe("ok");
      return proven!.segments.map(({ file }) => file);
    };
    const before = await segments(false);
    expect(await segments(true)).toEqual(expect.arrayContaining(before));
  });

  // caught by: other rows taken for the same ones printed otherwise
  it("is UNVERIFIED where rows are others, too", async () => {
    await using tables = await TableWorld.create();
    const priced = (row: ArrayRow, answer: number) => ({
      ...row,
      line: row.line.replace(/"price":"[^"]*"/, `"price":"${answer + 1}"`),
    });
    const changing = (row: ArrayRow, answer: number, i: number) =>
      print(i === 15 ? priced(row, answer) : row, answer, i);
    const { manifest } = await tables.archiveRun(new PrintedSource(rows, changing, {}));
    expect(manifest.tables.fills).toMatchObject({
      state: "UNVERIFIED",
      attempt: { error: { message: expect.stringContaining("changed each time they were fetched") } },
    });
  });
});

// caught by: an answer with other rows, and then one with those that are here, taken for the same rows printed otherwise
it("a value that alternates from answer to answer is not proven", async () => {
  await using tables = await TableWorld.create();
  const times = { started: at(0), ended: at(29) };
  const manners = { literal: false, times };
  await tables.archiveRun(new ArraySource(run, new Map([["fills", rows]]), { ...manners, final: false }));
  const alternating = (row: ArrayRow, answer: number, i: number) =>
    i !== 15 || answer % 2 === 1 ? row : { ...row, line: row.line.replace(/"price":"[^"]*"/, '"price":"7"') };
  const source = new PrintedSource(rows, alternating, { ...manners, final: true });
  const { attempt } = (await tables.archiveRun(source)).manifest.tables.fills!;
  expect(attempt.outcome).toBe("UNVERIFIED");
});
