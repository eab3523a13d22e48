import { tableNames } from "../../model/profile/table.ts";
import type { KeyPath } from "../../model/yaml/tree.ts";
import type { CompileContext } from "./compile-context.ts";
import type { FactFields, RunFields } from "./profile.ts";
import type { ProfileFile } from "./profile-schema.ts";

type DocumentsFile = NonNullable<ProfileFile["documents"]>;
/** Where a document's values are, over either transport. */
type Fields<K extends "runs" | "storage"> = Omit<
  Exclude<NonNullable<DocumentsFile[K]>, "none">,
  "path" | "method" | "parameters" | "times" | "table_parameter"
>;

/** Where a run's values are, with times in this unit. */
export function runFields(runs: Fields<"runs">, unit: RunFields["unit"]): RunFields {
  return {
    id: runs.id,
    started: runs.started,
    ended: runs.ended,
    unit,
    status: runs.status,
    words: runs.words ?? { RUNNING: "RUNNING", FINISHED: "FINISHED", FAILED: "FAILED" },
    final: runs.final,
    storageVersion: runs.storage_version,
  };
}

/** Where the values of a table's facts are. Reports faults as a whole. */
export function factFields(
  at: KeyPath,
  storage: Fields<"storage"> & { readonly table_parameter?: unknown },
  asked: {
    readonly unit: FactFields["unit"];
    readonly takesBounds: boolean;
    /** Why the request has no bounds, for messages. */
    readonly noBounds: string;
  },
  context: Pick<CompileContext, "fault">,
): Omit<FactFields, "tableParameter"> {
  const { list, table } = storage;
  if (list === undefined && storage.table_parameter === undefined) {
    context.fault(
      at,
      "needs list, the place of the tables, or table_parameter, which requests one",
      "For example, add `list: tables`.",
    );
  }
  if (list !== undefined && table === undefined) {
    context.fault(
      at,
      "needs table, the place where an entry names its table",
      "For example, add `table: name`.",
    );
  }
  if (storage.heeds_bounds === true && !asked.takesBounds) {
    context.fault(
      [...at, "heeds_bounds"],
      `is not possible: ${asked.noBounds}`,
      "Name from and to under parameters, or remove heeds_bounds.",
    );
  }
  const wordOf = new Map<string, string>();
  for (const [word, name] of Object.entries(storage.tables ?? {})) {
    const other = wordOf.get(name);
    if (other !== undefined) {
      context.fault([...at, "tables", word], `is the same table as ${other}`, "Remove one of the two.");
    }
    wordOf.set(name, word);
  }
  return {
    list,
    table: table ?? [],
    tableWords: storage.tables ?? Object.fromEntries(tableNames.map((name) => [name, name])),
    rows: storage.rows,
    first: storage.first,
    last: storage.last,
    unit: asked.unit,
    final: storage.final,
    heedBounds: storage.heeds_bounds ?? asked.takesBounds,
  };
}
