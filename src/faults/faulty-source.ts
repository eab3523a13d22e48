import { RunvaultError } from "../model/error.ts";
import { type TableName, tableNamed } from "../model/profile/table.ts";
import type { RouteTraits } from "../model/route-traits.ts";
import type { AcceptedRows, RowAnswer } from "../model/row-answer.ts";
import type {
  DocumentKind,
  FactsRequest,
  HistorySource,
  InstanceEntry,
  RowRequest,
  RunEntry,
  RunRef,
  StorageFacts,
  TableFacts,
} from "../model/source.ts";
import type { TimeBounds } from "../model/time.ts";
import { lineHash } from "../row/row-hash.ts";
import type { ArmedFaults } from "./armed-faults.ts";
import type { Fault, FaultKind } from "./fault.ts";
import { chunksOfLines, rowLines } from "./row-lines.ts";
import { fieldValue, withField, withoutField } from "./row-text.ts";

const rowKinds: readonly FaultKind[] = [
  "repeat",
  "malformed",
  "wrong-type",
  "decimals",
  "number",
  "missing-key",
  "unknown-field",
  "out-of-order",
  "foreign-run",
  "out-of-bounds",
];

/** Kinds that need an answer's lines: to change them, or to stop after one. */
const lineKinds: readonly FaultKind[] = [
  ...rowKinds,
  ...(["absent", "late", "cap", "tie-cap", "cut", "cut-clean", "stall"] as const),
];

/** Rows over RPC can have only their messages' fields: unknown fields are added on the wire instead. */
const messageKinds = rowKinds.filter((kind) => kind !== "unknown-field");

/** A row as in the source, which identifies it, and as sent. */
interface ShownRow {
  readonly id: string;
  readonly row: string;
}

/**
 * A source whose rows and facts have faults, as of a store rather than of the wire. Chunks of tables without a fault
 * pass unchanged. Disposing it disposes the source it wraps.
 */
export class FaultySource implements HistorySource {
  readonly label: string;
  readonly #source: HistorySource;
  readonly #faults: ArmedFaults;
  readonly #kinds: readonly FaultKind[];
  /** Rows by their place, remembered so that a fault stays on its row while a run grows. */
  readonly #placed: Map<string, Promise<readonly string[]>>;

  constructor(
    source: HistorySource,
    faults: ArmedFaults,
    kinds: readonly FaultKind[] = rowKinds,
    placed = new Map<string, Promise<readonly string[]>>(),
  ) {
    this.#source = source;
    this.#faults = faults;
    this.#kinds = kinds;
    this.#placed = placed;
    this.label = source.label;
  }

  instances(signal?: AbortSignal): Promise<readonly InstanceEntry[]> {
    return this.#source.instances(signal);
  }

  async runs(instanceId: string, signal?: AbortSignal): Promise<readonly RunEntry[] | null> {
    const runs = await this.#source.runs(instanceId, signal);
    const isHeld = this.#faults.all(["late"]).some((fault) => this.#faults.holds(fault));
    if (runs === null || !isHeld) return runs;
    return runs.map((run) =>
      run.storageVersion === undefined ? run : { ...run, storageVersion: `${run.storageVersion}-rows-held` },
    );
  }

  document(run: RunRef, kind: DocumentKind, signal?: AbortSignal): Promise<Uint8Array | null> {
    return this.#source.document(run, kind, signal);
  }

  async facts(
    run: RunRef,
    bounds: TimeBounds,
    signal?: AbortSignal,
    request: FactsRequest = {},
  ): Promise<StorageFacts | null> {
    for (const fault of this.#faults.all(["late"])) this.#faults.countRequest(fault);
    const asked = await this.#source.facts(run, bounds, signal, request);
    if (asked === null) return null;
    const shown = new Map<TableName, TableFacts>();
    for (const [table, facts] of asked) {
      if (this.#isAbsent(table)) continue;
      shown.set(table, await this.#shownFacts(run, { ...request, table }, bounds, facts, signal));
    }
    return shown;
  }

  rows(request: RowRequest): AsyncIterable<Uint8Array> {
    return this.#shown(request);
  }

  /** The source's own answer, unless there is a fault on the table's lines, which no other form can have. */
  async answer(request: RowRequest, accepted: AcceptedRows): Promise<RowAnswer | null> {
    if (this.#faults.on(request.table, lineKinds).length > 0) return null;
    return (await this.#source.answer?.(request, accepted)) ?? null;
  }

  traits(table: TableName): RouteTraits | undefined {
    return this.#source.traits?.(table);
  }

  get described(): HistorySource["described"] {
    return this.#source.described;
  }

  /** The same for rows over RPC. */
  forMessages(): HistorySource {
    return new FaultySource(this.#source, this.#faults, messageKinds, this.#placed);
  }

  /** A row of the run's whole table in key order, from 1, as text of latin1 bytes; undefined if there are fewer. */
  async rowAt(table: RunRef & { table: TableName }, ordinal: number): Promise<string | undefined> {
    return (await this.#rowsAt(table, ordinal, 1))[0];
  }

  async *#shown(request: RowRequest): AsyncGenerator<Uint8Array> {
    const { table, runId } = request;
    if (this.#isAbsent(table))
      throw new RunvaultError("history_unavailable", `run ${JSON.stringify(runId)} has no ${table}`);
    const late = this.#faults.on(table, ["late"]);
    for (const fault of late) this.#faults.countRequest(fault);
    const held = await this.#heldRows(request, late);
    const [tie] = this.#faults.on(table, ["tie-cap"]);
    const caps = this.#faults.on(table, ["cap"]).filter((fault) => this.#faults.hit(fault));
    const limits = [request.limit, tie?.cap, ...caps.map(({ at }) => at)].filter(
      (limit) => limit !== undefined,
    );
    const limit = limits.length === 0 ? undefined : Math.min(...limits);
    const rowFaults = this.#faults.on(table, this.#kinds);
    if (held.size === 0 && tie === undefined && rowFaults.length === 0) {
      yield* this.#source.rows({ ...request, limit });
      return;
    }
    const shown = this.#shownRows({ ...request, limit: undefined }, held, tie);
    yield* chunksOfLines(firstOf(this.#withRowFaults(shown, request, rowFaults), limit));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source[Symbol.asyncDispose]();
  }

  async #shownFacts(
    run: RunRef,
    asked: FactsRequest & { readonly table: TableName },
    bounds: TimeBounds,
    facts: TableFacts,
    signal: AbortSignal | undefined,
  ): Promise<TableFacts> {
    const { table } = asked;
    const ignoring = this.#faults.on(table, ["facts-ignore-bounds"]).some((fault) => this.#faults.hit(fault));
    const window = ignoring ? {} : bounds;
    let shown = ignoring ? ((await this.#source.facts(run, {}, signal, asked))?.get(table) ?? facts) : facts;
    const held = await this.#heldRows({ ...run, table }, this.#faults.on(table, ["late"]));
    const [tie] = this.#faults.on(table, ["tie-cap"]);
    if (held.size > 0 || tie !== undefined) {
      let rows = 0n;
      let first: bigint | undefined;
      let last: bigint | undefined;
      let rowHash = facts.rowHash === undefined ? undefined : 0n;
      for await (const { row } of this.#shownRows({ ...run, ...window, table, signal }, held, tie)) {
        const ts = BigInt(fieldValue(row, "ts_event"));
        rows += 1n;
        first = first === undefined || ts < first ? ts : first;
        last = last === undefined || ts > last ? ts : last;
        if (rowHash !== undefined) rowHash += lineHash(Buffer.from(row, "latin1"));
      }
      shown = { ...shown, rows, first, last, ...(rowHash === undefined ? {} : { rowHash }) };
    }
    const disagreeing = this.#faults.on(table, ["facts-disagree"]);
    if (disagreeing.length === 0 || shown.first === undefined) return shown;
    // only the window with the first row has the difference, so windows still add up, unlike facts that ignore bounds
    const whole = (await this.#source.facts(run, {}, signal))?.get(table);
    for (const fault of disagreeing) {
      if (shown.first !== whole?.first || !this.#faults.hit(fault)) continue;
      const rows = shown.rows + BigInt(fault.at);
      shown = { ...shown, rows: rows < 0n ? 0n : rows };
    }
    return shown;
  }

  #isAbsent(table: TableName): boolean {
    return this.#faults.on(table, ["absent"]).length > 0;
  }

  async #heldRows(run: RunRef & { table: TableName }, late: readonly Fault[]): Promise<ReadonlySet<string>> {
    // everything is decided before the first await, so that one answer sees one state
    const holding = late.filter((fault) => this.#faults.holds(fault));
    const held = await Promise.all(holding.map(({ at, count }) => this.#rowsAt(run, at, count)));
    return new Set(held.flat());
  }

  /** The rows of the window in key order: late ones held back, tied ones on one timestamp. */
  async *#shownRows(
    request: RowRequest,
    held: ReadonlySet<string>,
    tie: Fault | undefined,
  ): AsyncGenerator<ShownRow> {
    const tied = tie === undefined ? [] : await this.#rowsAt(request, tie.at, tie.count);
    const hidden = new Set([...held, ...tied]);
    const [head] = tied;
    if (head === undefined) {
      yield* this.#plainRows(request, hidden);
      return;
    }
    const tiedTime = fieldValue(head, "ts_event");
    const instant = BigInt(tiedTime);
    const { from, to } = request;
    if (from === undefined || from < instant) {
      yield* this.#plainRows({ ...request, to: to !== undefined && to < instant ? to : instant }, hidden);
    }
    if ((from === undefined || from <= instant) && (to === undefined || to > instant)) {
      const group = tied
        .filter((row) => !held.has(row) && passes(row, request.filters ?? {}))
        .map((id) => ({ id, row: withField(id, "ts_event", `"${tiedTime}"`) }));
      for await (const shown of this.#plainRows({ ...request, from: instant, to: instant + 1n }, hidden)) {
        group.push(shown);
      }
      yield* group
        .map((shown) => ({ shown, seq: BigInt(fieldValue(shown.row, "seq")) }))
        .sort((a, b) => (a.seq < b.seq ? -1 : a.seq > b.seq ? 1 : 0))
        .map(({ shown }) => shown);
    }
    if (to === undefined || to > instant + 1n) {
      yield* this.#plainRows(
        { ...request, from: from !== undefined && from > instant ? from : instant + 1n },
        hidden,
      );
    }
  }

  async *#plainRows(request: RowRequest, hidden: ReadonlySet<string>): AsyncGenerator<ShownRow> {
    for await (const row of rowLines(this.#source.rows(request))) {
      if (!hidden.has(row)) yield { id: row, row };
    }
  }

  async *#withRowFaults(
    rows: AsyncIterable<ShownRow>,
    request: RowRequest,
    faults: readonly Fault[],
  ): AsyncGenerator<string> {
    const onRow = new Map<string, Fault[]>();
    const swaps = new Map<string, { fault: Fault; next: string }>();
    for (const fault of faults) {
      const [row, next] = await this.#rowsAt(request, fault.at, fault.kind === "out-of-order" ? 2 : 1);
      if (row === undefined) continue;
      if (fault.kind !== "out-of-order") onRow.set(row, [...(onRow.get(row) ?? []), fault]);
      else if (next !== undefined) swaps.set(row, { fault, next });
    }
    const changed = ({ id, row }: ShownRow): string[] => this.#changedRow(row, request, onRow.get(id) ?? []);
    let waiting: ShownRow | undefined;
    for await (const shown of rows) {
      const swap = waiting === undefined ? undefined : swaps.get(waiting.id);
      if (waiting !== undefined && swap !== undefined) {
        const isSwapped = swap.next === shown.id && this.#faults.hit(swap.fault);
        yield* isSwapped ? [...changed(shown), ...changed(waiting)] : changed(waiting);
        waiting = undefined;
        if (isSwapped) continue;
      }
      if (swaps.has(shown.id)) waiting = shown;
      else yield* changed(shown);
    }
    if (waiting !== undefined) yield* changed(waiting);
  }

  #changedRow(row: string, request: RowRequest, faults: readonly Fault[]): string[] {
    let shown = [row];
    for (const fault of faults) {
      const changed = faultyRow(row, request, fault);
      if (changed !== null && this.#faults.hit(fault)) shown = changed;
    }
    return shown;
  }

  /** Rows `first` to `first + count - 1` of the run's whole table, from 1; fewer if the table has fewer. */
  async #rowsAt(
    { instanceId, runId, table }: RunRef & { table: TableName },
    first: number,
    count: number,
  ): Promise<readonly string[]> {
    const key = JSON.stringify([instanceId, runId, table, first, count]);
    let rows = this.#placed.get(key);
    if (rows === undefined) {
      rows = this.#readRowsAt({ instanceId, runId, table }, first, count);
      this.#placed.set(key, rows);
    }
    try {
      const found = await rows;
      if (found.length < count) this.#placed.delete(key);
      return found;
    } catch (error) {
      this.#placed.delete(key);
      throw error;
    }
  }

  async #readRowsAt(request: RowRequest, first: number, count: number): Promise<readonly string[]> {
    const found: string[] = [];
    let ordinal = 0;
    for await (const row of rowLines(this.#source.rows(request))) {
      ordinal += 1;
      if (ordinal >= first) found.push(row);
      if (found.length === count) break;
    }
    return found;
  }
}

/** A row after its fault; null if unchanged. */
function faultyRow(row: string, request: RowRequest, fault: Fault): string[] | null {
  const { columns } = tableNamed(request.table);
  const column = fault.column === undefined ? undefined : columns.find(({ name }) => name === fault.column);
  const exact = fault.column === undefined ? columns.find(({ kind }) => kind === "exact") : column;
  switch (fault.kind) {
    case "repeat":
      return [row, row];
    case "malformed":
      return [row.slice(0, Math.floor(row.length / 2))];
    case "wrong-type":
      return fault.column !== undefined && column === undefined
        ? null
        : [withField(row, column?.name ?? "seq", '"abc"')];
    case "decimals":
      return exact === undefined ? null : [withField(row, exact.name, '"1.123456789012"')];
    case "number":
      return exact === undefined ? null : [withField(row, exact.name, fieldValue(row, exact.name) || "1.5")];
    case "missing-key": {
      const missing = fault.column === undefined ? columns.at(-1) : column;
      return missing === undefined ? null : [withoutField(row, missing.name)];
    }
    case "unknown-field":
      return [`${row.slice(0, row.lastIndexOf("}"))},"unexpected":"1"}`];
    case "foreign-run":
      return [withField(row, "run_id", bytesText(JSON.stringify(`${request.runId}-foreign`)))];
    case "out-of-bounds": {
      const outside = request.to ?? (request.from === undefined ? undefined : request.from - 1n);
      return outside === undefined ? null : [withField(row, "ts_event", `"${outside}"`)];
    }
    default:
      return null;
  }
}

function passes(row: string, filters: Readonly<Record<string, string | undefined>>): boolean {
  return Object.entries(filters).every(([name, wanted]) => !wanted || fieldValue(row, name) === wanted);
}

/** A text's UTF-8 bytes as latin1 text, the form of rows here. */
function bytesText(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

async function* firstOf(rows: AsyncIterable<string>, limit: number | undefined): AsyncGenerator<string> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  if (left <= 0) return;
  for await (const row of rows) {
    yield row;
    left -= 1;
    if (left <= 0) return;
  }
}
