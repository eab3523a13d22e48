import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkRunDocument } from "../../src/gateway/documents.ts";
import type { DocumentKind } from "../../src/model/source.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const nested = (levels: number, inside = "") =>
  Buffer.from(`{"ok":true,"deep":${"[".repeat(levels - 1)}${inside}${"]".repeat(levels - 1)}}`);

const names = (count: number) => Array.from({ length: count }, (_, i) => `"k${i}":":{[,"`).join(",");

/** A run whose summary is as given. */
class DocumentSource extends ArraySource {
  summary: Buffer = nested(1);

  override async document(asked: typeof run, kind: DocumentKind) {
    return kind === "summary" ? this.summary : await super.document(asked, kind);
  }
}

it.each([
  ["64 levels", nested(64), true],
  ["65 levels", nested(65), false],
  ["five million levels", nested(5_000_000), false],
  ["130,000 names", Buffer.from(`{${names(130_000)}}`), true],
  ["brackets in a text", nested(2, JSON.stringify(`\\"${"[{".repeat(100)}`)), true],
  ["many objects beside each other", nested(2, Array(1000).fill("{}").join(",")), true],
])("a document of %s is stored, or left out with a warning", async (_, summary, isStored) => {
  await using tables = await TableWorld.create();
  const source = new DocumentSource(run, world({ fills: hours(5) }));
  source.summary = summary;
  const { manifest, warnings } = await tables.archiveRun(source);
  expect(manifest.state).toBe("COMPLETE");
  const stored = manifest.documents.summary;
  expect(stored !== undefined).toBe(isStored);
  const told = ["the summary document was left out: it is nested deeper than 64 levels"];
  expect(warnings).toEqual(isStored ? [] : told);
  if (stored === undefined) return;
  const file = join(tables.archive.layout.dataDir(run), stored.file);
  expect(Buffer.compare(await readFile(file), summary)).toBe(0);
});

it("a document that became too deep stays as it is held", async () => {
  await using tables = await TableWorld.create();
  const source = new DocumentSource(run, world({ fills: hours(5) }), { final: false });
  const before = await tables.archiveRun(source);
  source.summary = nested(70);
  source.manners = {};
  const { manifest, warnings } = await tables.archiveRun(source);
  expect(manifest.documents.summary).toEqual(before.manifest.documents.summary);
  expect(manifest.state).toBe("COMPLETE");
  expect(warnings).toHaveLength(1);
});

// a summary of 16 MiB with 700,000 names took 538 MB, and one of 5,000,000 empty objects 790 MB
it.each([
  [`{"v":{${names(140_000)}}}`, "it has an object with more than 131072 names"],
  [
    `{"v":[${Array(2 ** 19)
      .fill("{}")
      .join(",")}]}`,
    "it has more than 524288 objects and lists",
  ],
])(
  "a document that takes far more memory than it has bytes is left out with a warning",
  async (text, says) => {
    await using tables = await TableWorld.create();
    const source = new DocumentSource(run, world({ fills: hours(5) }));
    source.summary = Buffer.from(text);
    const { manifest, warnings } = await tables.archiveRun(source);
    expect({ state: manifest.state, summary: manifest.documents.summary, warnings }).toEqual({
      state: "COMPLETE",
      summary: undefined,
      warnings: [`the summary document was left out: ${says}`],
    });
    // whoever reads a gateway's answer refuses it before it is parsed
    expect(() => checkRunDocument(source.summary, run, {})).toThrow(
      expect.objectContaining({ code: "limit_exceeded", scope: "table" }),
    );
  },
);
