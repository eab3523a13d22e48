import type { RunvaultError } from "../../model/error.ts";
import { faultError, fileFault } from "../../model/yaml/file-fault.ts";
import type { FileKind } from "../../model/yaml/file-kind.ts";
import { issueFaults } from "../../model/yaml/issue-faults.ts";
import { plainJsonSchema } from "../../model/yaml/json-schema.ts";
import { readText } from "../../model/yaml/read-text.ts";
import { plainOf, type TreeFault } from "../../model/yaml/tree.ts";
import { readYamlTree } from "../../model/yaml/yaml-tree.ts";
import { type InstrumentEntry, instrumentsSchema } from "./instruments-schema.ts";

/** The contents of an instruments file. */
export interface InstrumentsFile {
  /** Its name as given. */
  readonly file: string;
  /** In the order of the file: the first that matches counts. */
  readonly entries: readonly InstrumentEntry[];
}

/**
 * Reads the file of `--instruments`. Throws `invalid_argument` at the line and column of the first thing that is wrong,
 * with the nearest right name of a key or word.
 */
export async function readInstruments(file: string): Promise<InstrumentsFile> {
  const content = await readText(file, "an instruments file");
  if ("fault" in content) throw errorOf([content.fault], file);
  const { tree, faults } = readYamlTree(content.text.replace(/^\ufeff/, ""));
  if (tree === null || faults.length > 0) throw errorOf(faults.length > 0 ? faults : [emptyFault], file);
  const parsed = instrumentsSchema.safeParse(plainOf(tree));
  if (!parsed.success) throw errorOf(issueFaults(parsed.error.issues, tree, instrumentsKind()), file);
  return { file, entries: parsed.data };
}

const reference = "docs/instruments.md lists the keys of an instruments file.";

const emptyFault: TreeFault = {
  place: { kind: "file", line: 1, column: 1 },
  key: null,
  text: null,
  message: "the file is empty",
  hint: reference,
};

function instrumentsKind(): FileKind {
  return { name: "an instruments file", schema: plainJsonSchema(instrumentsSchema), reference };
}

/** The first error by place, and the number of others. */
function errorOf(faults: readonly TreeFault[], file: string): RunvaultError {
  const [first, ...more] = faults
    .map((fault) => fileFault(fault, file))
    .sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
  const others = more.length === 0 ? "" : ` (and ${more.length} more)`;
  return faultError({ ...first!, message: `${first!.message}${others}` });
}
