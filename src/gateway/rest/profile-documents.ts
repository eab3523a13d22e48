import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { isTableName, type TableName } from "../../model/profile/table.ts";
import type { InstanceEntry, ListedRun, StorageFacts, TableFacts } from "../../model/source.ts";
import { int64Max, int64Min, type Nanoseconds } from "../../model/time.ts";
import { Turns } from "../../model/turns.ts";
import { endsOfNone } from "../documents.ts";
import { documentMaxBytes } from "../http/http-session.ts";
import type { FactFields, RestDocuments, RunFields } from "../profile/profile.ts";
import { countOf, instantIn, scalarOf, truthOf } from "./field-values.ts";
import { DocumentScanner } from "./pages/document-scanner.ts";

type Path = readonly string[];

/** An entry of a list: its bytes, and the JSON texts of the wanted values. */
interface Entry {
  readonly text: Uint8Array;
  readonly values: readonly (string | undefined)[];
}

const lineFeed = 0x0a;

/** The values at these places of one JSON value. Throws `not_a_gateway`. */
export function valuesIn(
  text: Uint8Array,
  paths: readonly (Path | undefined)[],
  place: ErrorPlace,
): (string | undefined)[] {
  const given = paths.filter((path) => path !== undefined);
  const scanner = new DocumentScanner(
    { array: undefined, values: given, valueBytes: documentMaxBytes },
    place,
  );
  scanner.push(text);
  scanner.end();
  return paths.map((path) => (path === undefined ? undefined : scanner.value(given.indexOf(path))));
}

/** The entries of a document's list. Throws `not_a_gateway`. */
async function entriesOf(
  bytes: Uint8Array,
  list: Path,
  paths: readonly (Path | undefined)[],
  place: ErrorPlace,
): Promise<Entry[]> {
  const turns = new Turns();
  const scanner = new DocumentScanner({ array: list, values: [] }, place);
  const lines = scanner.push(bytes);
  scanner.end();
  const entries: Entry[] = [];
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(lineFeed, start);
    const text = lines.subarray(start, end);
    entries.push({ text, values: valuesIn(text, paths, place) });
    if (turns.isDue(text.length)) await turns.next();
    start = end + 1;
  }
  return entries;
}

/** The instances that a document lists, with the runs it names for them. Throws `not_a_gateway`. */
export async function listedInstances(
  bytes: Uint8Array,
  { list, id, runs }: Pick<NonNullable<RestDocuments["instances"]>, "list" | "id" | "runs">,
  place: ErrorPlace,
): Promise<readonly InstanceEntry[]> {
  const entries = await entriesOf(bytes, list, [id, runs], place);
  const instances = entries.map(
    ({ values: [name, runIds] }): InstanceEntry => ({
      instanceId: idOf(name, id, "instance", place),
      runIds: runIds === undefined || runIds === "null" ? [] : idsOf(runIds, runs!, place),
    }),
  );
  requireDistinct(
    instances.map(({ instanceId }) => instanceId),
    "instance",
    place,
  );
  return instances;
}

function idsOf(json: string, path: Path, place: ErrorPlace): string[] {
  const scanner = new DocumentScanner({ array: [], values: [] }, place);
  const lines = Buffer.from(scanner.push(Buffer.from(json))).toString("utf8");
  scanner.end();
  const ids = lines
    .split("\n")
    .slice(0, -1)
    .map((text) => idOf(text, path, "run", place));
  requireDistinct(ids, "run", place);
  return ids;
}

/**
 * The runs that a document lists. A run whose entry has nothing readable but its id gets its own fault. Throws
 * `not_a_gateway`.
 */
export async function listedRuns(
  bytes: Uint8Array,
  instanceId: string,
  fields: RunFields & { readonly list: Path },
  place: ErrorPlace,
): Promise<readonly ListedRun[]> {
  const { list, id, started, ended, status, final, storageVersion } = fields;
  const paths = [id, started, ended, status, final, storageVersion];
  const entries = await entriesOf(bytes, list, paths, place);
  const runs = entries.map(({ text, values }): ListedRun => {
    const runId = idOf(values[0], id, "run", place);
    if (runId === "current") throw wrong(place, `${shown(id)}: current is a reserved word, not a run id`);
    const here = { ...place, run: runId };
    try {
      return { instanceId, runId, ...describedRun(values, fields, here), text };
    } catch (thrown) {
      if (!(thrown instanceof RunvaultError)) throw thrown;
      return { instanceId, runId, ...nothingKnown, fault: thrown.concerning("run") };
    }
  });
  requireDistinct(
    runs.map(({ runId }) => runId),
    "run",
    place,
  );
  return runs;
}

const nothingKnown = {
  status: "",
  started: undefined,
  ended: undefined,
  final: false,
  storageVersion: undefined,
  text: undefined,
};

function describedRun(
  [, started, ended, status, final, version]: readonly (string | undefined)[],
  fields: RunFields,
  place: ErrorPlace,
) {
  const time = (json: string | undefined, path: Path | undefined): Nanoseconds | undefined => {
    const text = json === undefined ? undefined : scalarOf(json);
    if (text === undefined && json !== undefined && json !== "null") throw notATime(place, path!);
    if (text === undefined || text === "") return undefined;
    const ns = instantIn(text, fields.unit);
    if (ns === undefined || ns < int64Min || ns > int64Max) throw notATime(place, path!);
    return ns === 0n ? undefined : ns;
  };
  const word = status === undefined ? undefined : (scalarOf(status) ?? status);
  if (fields.status !== undefined && word === undefined)
    throw wrong(place, `${shown(fields.status)}: missing`);
  const isFinal = final === undefined ? false : truthOf(final);
  if (isFinal === undefined) throw wrong(place, `${shown(fields.final!)}: neither true nor false`);
  return {
    status: word === undefined ? "UNKNOWN" : ownWord(fields.words, word),
    started: time(started, fields.started),
    ended: time(ended, fields.ended),
    final: isFinal,
    saysFinal: final !== undefined && final !== "null",
    storageVersion: version === undefined ? undefined : scalarOf(version) || undefined,
  };
}

function ownWord(words: RunFields["words"], word: string): string {
  return Object.hasOwn(words, word) ? words[word]! : word.slice(0, 64);
}

/** Facts from documents, each about the requested table or the tables it names. Throws `not_a_gateway`. */
export async function listedFacts(
  answers: readonly {
    readonly bytes: Uint8Array;
    readonly table: TableName | undefined;
    readonly place: ErrorPlace;
  }[],
  fields: FactFields,
): Promise<StorageFacts> {
  const facts = new Map<TableName, TableFacts>();
  const paths = [fields.table, fields.rows, fields.first, fields.last, fields.final];
  for (const { bytes, table: asked, place } of answers) {
    const entries =
      fields.list === undefined
        ? [{ text: bytes, values: valuesIn(bytes, paths, place) }]
        : await entriesOf(bytes, fields.list, paths, place);
    for (const { values } of entries) {
      const table = tableOf(values[0], fields, asked);
      if (table === undefined || (asked !== undefined && table !== asked)) continue;
      if (facts.has(table)) throw wrong(place, `${table} appears twice`);
      facts.set(table, factsOf(values, fields, table, place));
    }
  }
  const [only] = answers;
  if (only === undefined || answers.length > 1) return facts;
  return Object.defineProperty(facts, "text", { value: only.bytes });
}

function tableOf(
  json: string | undefined,
  { tableWords }: FactFields,
  asked: TableName | undefined,
): TableName | undefined {
  const word = json === undefined ? undefined : scalarOf(json);
  if (word === undefined) return asked;
  if (Object.hasOwn(tableWords, word)) return tableWords[word];
  return isTableName(word) && !Object.values(tableWords).includes(word) ? word : undefined;
}

function factsOf(
  [, rows, first, last, final]: readonly (string | undefined)[],
  fields: FactFields,
  table: TableName,
  place: ErrorPlace,
): TableFacts {
  const text = rows === undefined ? undefined : scalarOf(rows);
  const count = text === undefined ? undefined : countOf(text);
  if (count === undefined) throw wrong(place, `${shown(fields.rows)} of ${table} is not a number of rows`);
  const time = (json: string | undefined, path: Path | undefined) => {
    const given = json === undefined ? undefined : scalarOf(json);
    if (path === undefined) return undefined;
    const ns = given === undefined ? undefined : instantIn(given, fields.unit);
    if (ns !== undefined && ns >= int64Min && ns <= int64Max) return ns;
    if (count === 0n) return undefined;
    throw notATime(place, path);
  };
  const [from, to] = [time(first, fields.first), time(last, fields.last)];
  if (count > 0n && from !== undefined && to !== undefined && from > to) {
    throw wrong(place, `the first time of ${table} is after its last`);
  }
  const isFinal = final === undefined ? false : truthOf(final);
  if (isFinal === undefined)
    throw wrong(place, `${shown(fields.final!)} of ${table} is neither true nor false`);
  const ends = count === 0n ? endsOfNone(from, to) : { first: from, last: to };
  return { rows: count, ...ends, schemaFingerprint: "", final: isFinal };
}

/** The current run by an instance's document; null if it names none. */
export function currentRunIn(bytes: Uint8Array, path: Path, place: ErrorPlace): string | null {
  const [json] = valuesIn(bytes, [path], place);
  const text = json === undefined ? undefined : scalarOf(json);
  return text === undefined || text === "" || text === "current" ? null : text;
}

function idOf(json: string | undefined, path: Path, what: string, place: ErrorPlace): string {
  const id = json === undefined ? undefined : scalarOf(json);
  if (id !== undefined && id !== "") return id;
  throw wrong(place, `${shown(path)}: an entry names no ${what}`);
}

function requireDistinct(names: readonly string[], what: string, place: ErrorPlace): void {
  if (new Set(names).size !== names.length) throw wrong(place, `one ${what} appears twice`);
}

function shown(path: Path): string {
  return path.length === 0 ? "the entry" : path.join(".");
}

function notATime(place: ErrorPlace, path: Path): RunvaultError {
  return wrong(place, `${shown(path)}: not a time in the profile's unit`);
}

function wrong(place: ErrorPlace, what: string): RunvaultError {
  return new RunvaultError("not_a_gateway", `the document is not as the profile says: ${what}`, {
    place,
    // nothing else is read
    status: 200,
    hint: "Compare the profile's documents with the gateway's answers; `runvault profile check` shows both.",
  });
}
