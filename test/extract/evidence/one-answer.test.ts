import { expect, it } from "vitest";
import { RunvaultError } from "../../../src/model/error.ts";
import { hours, run, TableWorld, world } from "../../fixtures/archive/table-world.ts";
import { ArraySource } from "../../fixtures/source/array-source.ts";

const rows = () => world({ fills: hours(60), orders: hours(40) });

// caught by: an answer with rows around the slice that facts count, which is let go of without a word
it("rows behind the last one that is counted came, though the slice is fetched without them", async () => {
  await using tables = await TableWorld.create();
  const whole = new ArraySource(run, rows());
  const source = new ArraySource(run, rows());
  source.tables.set("fills", whole.tables.get("fills")!.slice(0, -3));
  const own = source.rows.bind(source);
  let isFirst = true;
  source.rows = (request) => {
    if (request.table !== "fills" || !isFirst) return own(request);
    isFirst = false;
    return whole.rows(request);
  };
  // in one slice, which is asked for within bounds far around it
  const { manifest } = await tables.archiveRun(source, { settings: { sliceRows: 500 } });
  expect(manifest.tables.fills!.attempt).toMatchObject({
    outcome: expect.stringMatching(/INCOMPLETE|UNVERIFIED/),
    error: { message: expect.stringMatching(/^the gateway sent \d+ rows? in/) },
  });
});

// caught by: totals that are asked for again only where a table has rows
it("a table is not absent where the totals that are asked for again count rows of it", async () => {
  await using tables = await TableWorld.create();
  const whole = new ArraySource(run, rows());
  const source = new ArraySource(run, rows(), {
    refuses: ({ table }) =>
      table === "fills" ? new RunvaultError("history_unavailable", "none") : undefined,
  });
  const own = source.facts.bind(source);
  let reconnections = 0;
  const { manifest } = await tables.archiveRun(source, {
    tables: ["fills", "orders"],
    source: Object.assign(source, {
      facts: async (...asked: Parameters<typeof own>) => {
        if (reconnections === 1) return await whole.facts(...asked);
        const facts = new Map(await own(...asked));
        facts.delete("fills");
        return facts;
      },
      reconnect: () => {
        reconnections++;
      },
    }),
  });
  expect(manifest.tables.fills!.attempt).toMatchObject({
    outcome: "UNVERIFIED",
    error: { message: expect.stringContaining("it reported or sent 60 rows of it") },
  });
});
