import { describe, expect, it } from "vitest";
import type { RowRequest } from "../../src/model/source.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { type ArrayRow, ArraySource, type Manners } from "../fixtures/source/array-source.ts";

const manners: Manners = { times: { started: at(0), ended: at(5) } };
const recheckBefore = at(2_000_000);

/** A source whose third row has the price that an answer is given, by the answer's number since the night began. */
class Changing extends ArraySource {
  price: (answer: number) => string | undefined = () => undefined;
  #answers = 0;
  night(price: Changing["price"], more: Manners = manners): void {
    this.#answers = 0;
    this.price = price;
    this.manners = more;
  }
  priced(price: string | undefined): ArrayRow[] {
    const rows = [...this.tables.get("fills")!];
    const [row] = repriced(rows.slice(2, 3));
    if (price !== undefined) rows[2] = { ...row!, line: row!.line.replace('"777"', `"${price}"`) };
    return rows;
  }
  override async *rows(request: RowRequest): AsyncIterable<Uint8Array> {
    this.asked.push(request);
    const hasRow =
      request.limit === undefined && (request.from ?? 0n) <= at(2) && (request.to ?? at(9)) > at(2);
    const rows = this.priced(this.price(hasRow ? this.#answers++ : 0));
    yield* new ArraySource(run, new Map([["fills", rows]]), this.manners).rows(request);
  }
}

const changing = (more: Manners = manners) => new Changing(run, world({ fills: hours(6) }), more);
const always = (answer: number) => `1.${answer + 1}`;

describe("a row that differs in every answer", () => {
  // the last of the answers was stored, and called "streamed once more, and compared"
  it("leaves what was proven by a recheck as it was, each night until it stays the same", async () => {
    await using tables = await TableWorld.create();
    const source = changing();
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    for (const settings of [{ recheckBefore }, {}]) {
      source.night(always);
      const { fills } = (await tables.archiveRun(source, { settings })).manifest.tables;
      expect(fills!.attempt).toMatchObject({
        outcome: "UNVERIFIED",
        error: { code: "unverified", message: expect.stringContaining("changed each time") },
      });
      expect(fills!.proven).toMatchObject({ state: "COMPLETE" });
    }
    source.night(() => "9.5");
    expect((await tables.archiveRun(source)).manifest.tables.fills!.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.priced("9.5"));
  });

  it("is not COMPLETE by the final pass", async () => {
    await using tables = await TableWorld.create();
    const source = changing({ ...manners, final: false });
    await tables.archiveRun(source);
    source.night(always);
    const { fills } = (await tables.archiveRun(source)).manifest.tables;
    expect(fills).toMatchObject({ proven: { state: "OPEN" }, attempt: { outcome: "UNVERIFIED" } });
  });
});

describe("a row that changed", () => {
  // an honest correction would be an alarm, or cost another night
  it.each([
    ["once and stays", () => "9.5", "9.5"],
    ["again before it was fetched", (answer: number) => (answer < 2 ? "9.4" : "9.5"), "9.5"],
  ])("%s is proven in the same night", async (_, price, last) => {
    await using tables = await TableWorld.create();
    const source = changing();
    await tables.archiveRun(source);
    source.night(price);
    const { fills } = (await tables.archiveRun(source, { settings: { recheckBefore } })).manifest.tables;
    expect(fills!.attempt).toMatchObject({ outcome: "ok", error: null });
    await tables.expectRows("fills", source.priced(last));
  });
});

describe("a row that changed between two passes that nothing counts", () => {
  const uncounted: Manners = { literal: true, times: { started: at(0), ended: at(9) } };
  // so many that it is not asked for by itself
  const open = () => new Changing(run, world({ fills: hours(10) }), uncounted);

  // caught by: an alarm about an honest gateway, though all since give the same
  it("once and stays, is proven in the same night", async () => {
    await using tables = await TableWorld.create();
    const source = open();
    source.night((answer) => (answer === 0 ? "9.4" : "9.5"), uncounted);
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
    await tables.expectRows("fills", source.priced("9.5"));
  });

  // caught by: looks that one of two nodes has all of, for it answers each second question
  it.each(["rows", "questions"])(
    "and takes turns with another, is not, by whatever it counts its %s",
    async (by) => {
      await using tables = await TableWorld.create();
      const source = open();
      const turn = (answer: number) =>
        (by === "rows" ? answer : source.asked.length) % 2 === 0 ? "9.4" : "9.5";
      for (let night = 0; night < 2; night++) {
        source.night(turn, uncounted);
        expect((await tables.archiveRun(source)).manifest.state).toBe("UNVERIFIED");
      }
    },
  );
});
