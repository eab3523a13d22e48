import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

// the only one in which a row shows in no count of the run but in the document that is kept
it("the facts that are kept of a run that goes on count no row that is not there", async () => {
  await using tables = await TableWorld.create();
  const all = world({ fills: hours(60) }).get("fills")!;
  const source = new ArraySource(run, new Map([["fills", all.slice(0, 50).toSpliced(30, 1)]]), {
    final: false,
  });
  // a table is asked about again before it is proven for the first time
  await tables.archiveRun(source);
  source.tables.set("fills", all.toSpliced(30, 1));
  const counted = source.facts.bind(source);
  let wholes = 0;
  source.facts = async (...asked) => {
    const [, { from, to }] = asked;
    if (from === undefined && to === undefined && ++wholes === 2) source.tables.set("fills", all);
    const facts = (await counted(...asked))!;
    return Object.assign(facts, { text: Buffer.from(`{"rows":"${facts.get("fills")!.rows}"}`) });
  };
  source.document = async (asked, kind) =>
    kind === "facts" ? ((await source.facts(asked, {}))!.text ?? null) : null;
  const { manifest } = await tables.archiveRun(source, { tables: ["fills"] });
  const file = join(tables.archive.layout.dataDir(run), manifest.documents.facts!.file);
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ rows: "60" });
  expect(manifest.tables.fills).toMatchObject({ state: "OPEN", attempt: { outcome: "ok" } });
  await tables.expectRows("fills", all);
});
