import { describe, expect, it } from "vitest";
import type { StorageFacts, TableFacts } from "../../src/model/source.ts";
import { at, hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

/** Says other things of fills than are so, in the facts of all of the run; `asked` counts these. */
function saying(source: ArraySource, what: (asked: number) => Partial<TableFacts>): ArraySource {
  const facts = source.facts.bind(source);
  let asked = 0;
  source.facts = async (ref, bounds, ...rest): Promise<StorageFacts | null> => {
    const answer = new Map(await facts(ref, bounds, ...rest));
    if (bounds.from !== undefined) return answer;
    return answer.set("fills", { ...answer.get("fills")!, ...what(asked++) });
  };
  return source;
}

const filled = (final = true) => new ArraySource(run, world({ fills: hours(30), orders: [1] }), { final });

describe("first and last ts_event that the facts tell", () => {
  it.each<[string, Partial<TableFacts>]>([
    ["first", { first: at(0) - 5n }],
    ["last", { last: at(29) + 5n }],
  ])("are held against the rows, the %s", async (end, said) => {
    await using tables = await TableWorld.create();
    const { manifest } = await tables.archiveRun(saying(filled(), () => said));
    expect(manifest.tables.fills!.attempt).toMatchObject({
      outcome: "UNVERIFIED",
      error: {
        message: expect.stringMatching(
          new RegExp(`^the ${end} ts_event is \\d+ in the rows that came, but \\d+ in`),
        ),
      },
    });
    expect(manifest.tables.orders!.state).toBe("COMPLETE");
  });

  it("are not where rows are set aside, whose times nobody knows", async () => {
    await using tables = await TableWorld.create();
    const source = filled();
    const [first, ...rest] = source.tables.get("fills")!;
    const odd = { ...first!, line: first!.line.replace(/"price":"[^"]*"/, '"price":"abc"') };
    source.tables.set("fills", [odd, ...rest]);
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt.outcome).toBe("QUARANTINED");
  });

  it("may catch up while a finished run is asked again", async () => {
    await using tables = await TableWorld.create();
    const source = saying(filled(), (asked) => (asked < 2 ? { last: at(29) - 5n } : {}));
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
  });
});

describe("the table's own `final`", () => {
  it("is believed where it says that a table of a finished run still grows", async () => {
    await using tables = await TableWorld.create();
    const source = saying(filled(), () => ({ final: false }));
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt).toMatchObject({
      outcome: "UNVERIFIED",
      error: { message: expect.stringContaining("the gateway says that this table is still growing") },
    });
    expect(manifest.tables.orders!.state).toBe("COMPLETE");
  });

  it("is believed of all tables of a run that is marked final itself", async () => {
    await using tables = await TableWorld.create();
    const source = filled();
    const facts = source.facts.bind(source);
    source.facts = async (...asked) => {
      const answer = [...(await facts(...asked))!];
      return new Map(answer.map(([name, own]) => [name, { ...own, final: false }]));
    };
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.fills!.attempt.outcome).toBe("UNVERIFIED");
  });

  it("is asked for again first", async () => {
    await using tables = await TableWorld.create();
    const source = saying(filled(), (asked) => ({ final: asked > 1 }));
    expect((await tables.archiveRun(source)).manifest.state).toBe("COMPLETE");
  });

  it("says nothing where the gateway marks neither runs nor tables", async () => {
    await using tables = await TableWorld.create();
    const source = filled(false);
    const runs = source.runs.bind(source);
    source.runs = async (instanceId) =>
      (await runs(instanceId))!.map((entry) => ({ ...entry, status: "FINISHED", ended: at(29) + 1n }));
    const { manifest } = await tables.archiveRun(source);
    expect([manifest.run.final, manifest.state]).toEqual([true, "COMPLETE"]);
  });
});

describe("first and last ts_event that the facts tell of no rows", () => {
  /** A shard of orders is down: their route and their count have nothing, and an index still has their ends. */
  const hollow = (ends: Pick<TableFacts, "first" | "last">, final = true) => {
    const times = { started: at(0), ended: at(50) };
    const source = new ArraySource(run, world({ fills: hours(30), orders: [] }), { final, times });
    const facts = source.facts.bind(source);
    source.facts = async (...asked) => {
      const answer = new Map(await facts(...asked));
      return answer.set("orders", { ...answer.get("orders")!, ...ends });
    };
    return source;
  };

  // caught by: a count of none that is believed whatever stands beside it
  it.each([true, false])("are of rows that are missing (final: %s)", async (final) => {
    await using tables = await TableWorld.create();
    const { manifest } = await tables.archiveRun(hollow({ first: at(3), last: at(7) }, final));
    expect(manifest.tables.orders!.attempt).toMatchObject({
      outcome: "UNVERIFIED",
      error: { message: expect.stringContaining(`count no rows, but give ${at(3)} as the first ts_event`) },
    });
    expect(manifest.tables.fills!.attempt.outcome).toBe("ok");
  });

  // caught by: ends of one node that are forgotten once another has none
  it("count as long as the command goes on", async () => {
    await using tables = await TableWorld.create();
    const source = hollow({ first: at(3), last: at(7) });
    const [told, plain] = [source.facts, ArraySource.prototype.facts.bind(source)];
    let asked = 0;
    source.facts = (...question) => (asked++ === 0 ? told : plain)(...question);
    const { manifest } = await tables.archiveRun(source);
    expect(manifest.tables.orders!.attempt).toMatchObject({
      outcome: "INCOMPLETE",
      error: { message: expect.stringContaining("the gateway reported 1 row") },
    });
  });

  // caught by: an honest gateway that fails each night, for it tells the run's own ends of an empty table
  it("may be the run's own", async () => {
    await using tables = await TableWorld.create();
    const { manifest } = await tables.archiveRun(hollow({ first: at(0), last: at(50) }));
    expect(manifest.state).toBe("COMPLETE");
  });
});
