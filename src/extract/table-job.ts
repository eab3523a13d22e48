import { createHash } from "node:crypto";
import type PQueue from "p-queue";
import type { ExactTypes } from "../archive/convert-types.ts";
import type { RowHash, Segment, TableManifest, TableState } from "../archive/manifest.ts";
import type { Pending } from "../archive/pending.ts";
import { readSegment } from "../archive/segment.ts";
import { exit, RunvaultError } from "../model/error.ts";
import type { StorageFacts, TableFacts } from "../model/source.ts";
import type { Table, TableName } from "../model/table.ts";
import type { Nanoseconds } from "../model/time.ts";
import type { BucketConverter } from "./bucket-converter.ts";
import { fetchSlice, type Slice, type SliceWork } from "./fetch-slice.ts";
import {
  type CountRows,
  changedWindows,
  grainOf,
  type HeldWindow,
  heldWindows,
  planSlices,
  type TableExtent,
} from "./plan.ts";
import { type RunKnowledge, settledVersion } from "./run-knowledge.ts";
import { certifiedRows, isOutdated } from "./run-outlook.ts";
import { surveyTable } from "./survey.ts";

/** What the tables of one run's job share. */
export interface RunContext {
  /** Types of exact columns that Parquet is made in. */
  readonly exactTypes: (table: TableName) => ExactTypes;
  readonly pending: Pending;
  readonly run: RunKnowledge;
  /** Exclusive upper bound of ts_event; undefined for a finished run. */
  readonly until: Nanoseconds | undefined;
  readonly committed: Partial<Record<string, TableManifest>>;
  readonly slices: PQueue;
  readonly converter: BucketConverter;
  readonly work: Omit<SliceWork, "store" | "startOver" | "countRows" | "onRows">;
  readonly sliceRows: number;
  readonly acceptShrink: boolean;
  readonly requireCounted: boolean;
  /** Gives the row hash of Parquet files; undefined where none is wanted. */
  readonly fingerprint: ((table: Table, files: readonly string[]) => Promise<RowHash>) | undefined;
  readonly onPlan: (table: Table, rows: number | undefined) => void;
  readonly onRows: (table: Table, rows: number, bytes: number) => void;
  /** Rows of a survey, which stores nothing. */
  readonly onSurveyed: (table: Table, rows: number, bytes: number) => void;
}

/** One table of one run on its way into the archive. */
export class TableJob {
  readonly table: Table;
  error: RunvaultError | null = null;
  absent = false;
  readonly #context: RunContext;
  readonly #countRows: CountRows | undefined;
  readonly #former: TableManifest | undefined;
  /** Names of the files of the former generation's segments. */
  readonly #formerFiles: ReadonlySet<string>;
  #surveyedRows = 0;
  #extent: TableExtent = { rows: 0, first: undefined, last: undefined, final: false };
  #planned: Slice[] = [];

  constructor(table: Table, context: RunContext, countRows: CountRows | undefined) {
    this.table = table;
    this.#context = context;
    this.#countRows = countRows;
    this.#former = context.committed[table.name];
    this.#formerFiles = new Set(this.#former?.segments.map(({ file }) => file));
  }

  /** Rows the last plan found missing. */
  rowsToFetch = 0;

  /** Runs one step of this table; an error that concerns this table alone is kept, any other thrown. */
  async attempt(step: () => Promise<void>): Promise<void> {
    if (this.error !== null || this.absent) return;
    try {
      await step();
    } catch (thrown) {
      const { run } = this.#context;
      this.#context.work.signal.throwIfAborted();
      const error = RunvaultError.from(thrown).at({
        instance: run.instanceId,
        run: run.runId,
        table: this.table.name,
      });
      if (error.scope === "table") this.error = error;
      else throw error;
    }
  }

  /** Decides what is still to fetch, from the facts within the horizon or, without any, from a survey. */
  async plan(facts: StorageFacts | null): Promise<void> {
    const { pending, until, run, sliceRows } = this.#context;
    const { table } = this;
    const held = pending.held(table.name);
    const extent = await this.#measure(facts);
    if (extent === null) {
      this.#refuseToVanish();
      await pending.dropSegments(table.name, held.segments);
      this.absent = true;
      return;
    }
    this.#extent = extent;
    await this.#dropDisproven();
    this.#refuseToShrink();
    await this.#dropChanged();
    await this.#dropOutdated();
    const grain = grainOf(held, this.#extent);
    if (held.grain === null && this.#extent.rows > 0) await pending.setGrain(table.name, grain);
    this.#planned = await planSlices({
      run,
      table,
      extent: this.#extent,
      grain,
      windows: heldWindows(held),
      until,
      sliceRows,
      countRows: this.#countRows,
      surveyed: facts === null,
    });
    this.rowsToFetch = this.#extent.rows - sumRows(heldWindows(held));
    this.#context.onPlan(table, this.rowsToFetch + this.#surveyedRows);
  }

  /** Fetches the planned slices, and converts each bucket as soon as all of it is here. */
  async fetch(): Promise<void> {
    const { slices, pending } = this.#context;
    const left = new Map<string, number>();
    for (const { bucket } of this.#planned) left.set(bucket, (left.get(bucket) ?? 0) + 1);
    const held = new Set(pending.held(this.table.name).segments.map(({ bucket }) => bucket));
    // buckets that need no fetching, but lost or never got their Parquet
    const ready = [...held].filter((bucket) => !left.has(bucket)).map((bucket) => this.#convert(bucket));
    const tables = new AbortController();
    const fetched = this.#planned.map((slice) =>
      slices.add(async () => {
        if (tables.signal.aborted) return;
        try {
          await this.#fetchSlice(slice, AbortSignal.any([this.#context.work.signal, tables.signal]));
        } catch (error) {
          tables.abort();
          throw error;
        }
        const remaining = left.get(slice.bucket)! - 1;
        left.set(slice.bucket, remaining);
        return remaining === 0;
      }),
    );
    const converted = fetched.map(async (done, i) => {
      if (await done) await this.#convert(this.#planned[i]!.bucket);
    });
    const outcomes = await Promise.allSettled([...ready, ...converted]);
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === "rejected" ? [outcome.reason as unknown] : [],
    );
    // of several, the first that is not merely the echo of another's abort
    const cause = failures.find((failure) => !isAbort(failure)) ?? failures[0];
    if (cause !== undefined) throw cause;
    this.#planned = [];
  }

  /** Holds what is here against the facts. True when some windows must be fetched again, which are then planned. */
  async reconcile(facts: StorageFacts | null): Promise<boolean> {
    const own = facts?.get(this.table.name);
    const windows = heldWindows(this.#context.pending.held(this.table.name));
    if (own === undefined || Number(own.rows) === sumRows(windows) || this.#countRows === undefined)
      return false;
    await this.plan(facts);
    return this.#planned.length > 0;
  }

  /** The table as the manifest will have it. */
  async result(facts: StorageFacts | null, checkedAt: string): Promise<TableManifest> {
    const { pending, until, run, exactTypes } = this.#context;
    const held = pending.held(this.table.name);
    const common = {
      grain: held.grain ?? ("all" as const),
      exactTypes: { ...exactTypes(this.table.name) },
      storageVersion: settledVersion(run),
    };
    if (this.absent) {
      const nothing = {
        certificate: null,
        segments: [],
        parquet: [],
        quarantine: [],
        drift: [],
        error: null,
      };
      return { state: "ABSENT", ...common, ...nothing };
    }
    const former = this.#former;
    if (this.error !== null && former !== undefined && former.segments.length > 0) {
      if (!(await this.#addsTo(former, this.error))) {
        return { ...former, state: "INCOMPLETE", error: failureOf(this.error, checkedAt) };
      }
    }
    const ended = this.error === null ? "clean" : "cut";
    const segments = this.error !== null && !worthKeeping(this.error) ? [] : held.segments;
    const parquet = held.parquet
      .filter(({ file }) => segments.length > 0 && pending.isConverted(this.table.name, file.bucket))
      .sort((a, b) => (a.file.bucket < b.file.bucket ? -1 : 1));
    const windows = new Set(segments.map(windowOf));
    const quarantine = held.quarantine.filter((file) => windows.has(windowOf(file)));
    const quarantined = quarantine.reduce((sum, { rows }) => sum + rows, 0);
    const own = facts?.get(this.table.name);
    const rows = segments.reduce((sum, segment) => sum + segment.rows, 0);
    const proof = this.error === null ? await this.#proof(own, rows + quarantined) : "none";
    return {
      state: this.#state(proof, quarantined),
      ...common,
      certificate: {
        proof,
        ended,
        rows,
        quarantined,
        gatewayRows: own === undefined ? null : own.rows.toString(),
        first: parquet[0]?.file.first ?? null,
        last: parquet.at(-1)?.file.last ?? null,
        until: until?.toString() ?? null,
        schemaFingerprint: own?.schemaFingerprint ?? null,
        // buckets of a table that failed may lack their Parquet, which the hash is made of
        rowHash: this.error === null ? await this.#fingerprint(parquet.map(({ file }) => file.file)) : null,
        checkedAt,
      },
      segments: [...segments],
      parquet: parquet.map(({ file }) => file),
      quarantine,
      drift: [...new Set(parquet.flatMap(({ drift }) => drift))].sort(),
      error: this.error === null ? null : failureOf(this.error, checkedAt),
    };
  }

  /**
   * Whether what a failed table holds now is all of its former generation and more: then its progress is committed,
   * else the former generation stays as it is.
   */
  async #addsTo(former: TableManifest, error: RunvaultError): Promise<boolean> {
    const { pending, run } = this.#context;
    if (!worthKeeping(error) || isOutdated(former, run) || isDisproven(former)) return false;
    const { segments } = pending.held(this.table.name);
    const held = new Set(segments.map(({ file }) => file));
    if (!former.segments.every(({ file }) => held.has(file))) return false;
    // a former bucket that grew has its Parquet made anew: without it, readers of unfinished tables would lose it
    try {
      for (const bucket of new Set(former.parquet.map(({ bucket }) => bucket))) await this.#convert(bucket);
    } catch (thrown) {
      if (RunvaultError.from(thrown).scope !== "table") throw thrown;
      return false;
    }
    return true;
  }

  /** The row hash of the table's Parquet files, where one is asked for. */
  async #fingerprint(files: readonly string[]): Promise<RowHash | null> {
    const { pending, fingerprint } = this.#context;
    if (fingerprint === undefined) return null;
    return await fingerprint(this.table, await Promise.all(files.map((file) => pending.locate(file))));
  }

  #state(proof: "counted" | "exhausted" | "none", quarantined: number): TableState {
    if (this.error?.code === "unverified") return "UNVERIFIED";
    if (this.error !== null) return "INCOMPLETE";
    if (proof === "none" || (proof === "exhausted" && this.#context.requireCounted)) return "UNVERIFIED";
    if (quarantined > 0) return "QUARANTINED";
    return this.#context.run.final ? "COMPLETE" : "OPEN";
  }

  /** What the table's completeness rests on; sets the error where it does not hold. */
  async #proof(facts: TableFacts | undefined, rows: number): Promise<"counted" | "exhausted" | "none"> {
    const { until } = this.#context;
    if (facts !== undefined) {
      const wanted = Number(facts.rows);
      if (wanted === rows) {
        // no rows in all are none within any bounds, whether facts keep to them or not
        if (until === undefined || this.#countRows !== undefined || wanted === 0) return "counted";
        this.error = new RunvaultError(
          "unverified",
          "the gateway's storage facts ignore time bounds, so a run that goes on can't be proven",
          {
            hint: "Archive the run again once it is finished.",
          },
        );
        return "none";
      }
      this.error =
        wanted > rows
          ? new RunvaultError("incomplete", `${rows} rows came, the gateway says it holds ${wanted}`, {
              hint: "Run the same command again; if it stays so, ask the gateway's operator which is right.",
            })
          : new RunvaultError("unverified", `${rows} rows came, the gateway says it holds only ${wanted}`, {
              hint: "Run the same command again; if it stays so, ask the gateway's operator which is right.",
            });
      return "none";
    }
    const { survey, segments, quarantine } = this.#context.pending.held(this.table.name);
    if (survey === null || survey.rows !== rows) {
      this.error = new RunvaultError(
        "incomplete",
        `two passes brought ${survey?.rows ?? 0} and ${rows} rows`,
        {
          hint: "Run the same command again; the gateway gives different rows each time.",
        },
      );
      return "none";
    }
    if (quarantine.length > 0) return "exhausted";
    const hash = createHash("sha256");
    for (const segment of segments) {
      hash.update(await readSegment(await this.#context.pending.locate(segment.file), segment));
    }
    if (hash.digest("hex") === survey.sha256) return "exhausted";
    this.error = new RunvaultError(
      "unverified",
      "two passes brought the same number of rows, but not the same rows",
      {
        hint: "Run the same command again; the gateway gives different rows each time.",
      },
    );
    return "none";
  }

  /** What the gateway holds of the table; null where it says that it keeps no such table. */
  async #measure(facts: StorageFacts | null): Promise<TableExtent | null> {
    const { run } = this.#context;
    if (facts === null) return await this.#survey();
    const own = facts.get(this.table.name);
    return own === undefined ? null : extentOf(own, run.final);
  }

  /** What a pass over all of the table finds; null where the gateway has no such table from the first answer on. */
  async #survey(): Promise<TableExtent | null> {
    const { pending, until, run, work, slices, onSurveyed } = this.#context;
    const held = pending.held(this.table.name);
    let survey = held.survey;
    if (survey === null || survey.until !== (until?.toString() ?? null)) {
      const onRows = (rows: number, bytes: number) => {
        this.#surveyedRows += rows;
        onSurveyed(this.table, rows, bytes);
      };
      // what was held so far can't be asked about: only a pass over all of it tells
      const pass = () => slices.add(() => surveyTable(run, this.table, until, { ...work, onRows }));
      try {
        survey = await pass();
        // an answer cut ahead of its first row looks like an empty table, of which there is no second pass
        if (survey.rows === 0) survey = await pass();
      } catch (error) {
        if (this.#surveyedRows > 0 || !isUnavailable(error)) throw error;
        return null;
      }
      await pending.setSurvey(this.table.name, survey);
    }
    const time = (text: string | null) => (text === null ? undefined : BigInt(text));
    return { rows: survey.rows, first: time(survey.first), last: time(survey.last), final: run.final };
  }

  /** The gateway may say that it keeps no such table only where it has never given a row of it. */
  #refuseToVanish(): void {
    const { pending, acceptShrink } = this.#context;
    if (acceptShrink) return;
    const hint = "If the rows are rightly gone at the gateway, run again with --accept-shrink.";
    if (this.#formerFiles.size > 0) {
      throw new RunvaultError(
        "shrunk",
        "the gateway says that it keeps no such table, the archive holds rows of it",
        { hint },
      );
    }
    if (pending.held(this.table.name).segments.length > 0) {
      throw new RunvaultError(
        "history_unavailable",
        "the gateway says that it keeps no such table, and gave rows of it before",
        { hint },
      );
    }
  }

  /** What is committed of a table whose proof failed goes, where no count tells which of its windows is wrong. */
  async #dropDisproven(): Promise<void> {
    if (this.#former === undefined || !isDisproven(this.#former) || this.#countRows !== undefined) return;
    await this.#dropFormer(() => true);
  }

  /** Committed windows go that were archived of another version of the run, or with rows set aside. */
  async #dropOutdated(): Promise<void> {
    if (this.#former === undefined) return;
    const outdated = isOutdated(this.#former, this.#context.run);
    // the gateway may have mended these rows since
    const aside = new Set(this.#former.quarantine.map(windowOf));
    await this.#dropFormer((segment) => outdated || aside.has(windowOf(segment)));
  }

  /** Drops segments of the former generation; what this job fetched, before or after an interruption, is good. */
  async #dropFormer(goes: (segment: Segment) => boolean): Promise<void> {
    const { pending } = this.#context;
    const former = pending.held(this.table.name).segments.filter(({ file }) => this.#formerFiles.has(file));
    await pending.dropSegments(this.table.name, former.filter(goes));
  }

  /** Drops windows whose counts changed. Throws `shrunk` where a committed one lost rows, whatever others gained. */
  async #dropChanged(): Promise<void> {
    const { pending } = this.#context;
    const countRows = this.#countRows;
    if (countRows === undefined) return;
    for (const window of await changedWindows(heldWindows(pending.held(this.table.name)), countRows)) {
      const committed = window.segments.every(({ file }) => this.#formerFiles.has(file));
      if (committed && this.#mustNotShrink()) {
        const rows = await countRows(window.from, window.to);
        if (rows < window.rows) throw shrunk(rows, window.rows, ` in [${window.from}, ${window.to})`);
      }
      await pending.dropSegments(this.table.name, window.segments);
    }
  }

  #refuseToShrink(): void {
    if (this.#former === undefined || !this.#mustNotShrink()) return;
    const committed = certifiedRows(this.#former);
    if (this.#extent.rows < committed) throw shrunk(this.#extent.rows, committed, "");
  }

  /** Rows that the gateway's own count or second pass contradicted protect nothing. */
  #mustNotShrink(): boolean {
    if (this.#context.acceptShrink || this.#former === undefined) return false;
    const agreed = this.#former.certificate?.gatewayRows === certifiedRows(this.#former).toString();
    return agreed || !isDisproven(this.#former);
  }

  async #fetchSlice(slice: Slice, signal: AbortSignal): Promise<void> {
    const { pending, work, onRows } = this.#context;
    const name = this.table.name;
    const writes: Promise<void>[] = [];
    const unjournalled: Awaited<ReturnType<Pending["writeSegment"]>>[] = [];
    let failure: unknown;
    const store: SliceWork["store"] = async (draft, text, release) => {
      if (failure !== undefined) {
        release();
        throw failure;
      }
      const write = async () => {
        try {
          const segment = await pending.writeSegment(name, draft, text);
          if (draft.sorted) await pending.addSegments(name, [segment]);
          else unjournalled.push(segment);
        } catch (error) {
          failure = error;
          throw error;
        } finally {
          release();
        }
      };
      const writing = write();
      // awaited below, once the slice is here; until then nobody listens
      writing.catch(() => {});
      writes.push(writing);
    };
    const startOver = async () => {
      await Promise.all(writes);
      unjournalled.length = 0;
      const { from, to } = slice;
      const stale = pending.held(name).segments.filter((s) => BigInt(s.from) >= from && BigInt(s.to) <= to);
      await pending.dropSegments(name, stale);
    };
    try {
      await fetchSlice(slice, {
        ...work,
        signal,
        countRows: this.#countRows,
        store,
        startOver,
        onRows: (rows, bytes) => onRows(this.table, rows, bytes),
      });
    } finally {
      await Promise.allSettled(writes);
    }
    await Promise.all(writes);
    if (unjournalled.length > 0) await pending.addSegments(name, unjournalled);
  }

  async #convert(bucket: string): Promise<void> {
    const { pending, converter, run } = this.#context;
    if (pending.isConverted(this.table.name, bucket)) return;
    await converter.convert(pending, run, this.table, bucket);
  }
}

function extentOf(facts: TableFacts, runFinal: boolean): TableExtent {
  return { rows: Number(facts.rows), first: facts.first, last: facts.last, final: runFinal };
}

/** Every stream ended well, and yet counts or a second pass did not agree: nobody knows which rows are right. */
function isDisproven({ certificate }: TableManifest): boolean {
  return certificate?.proof === "none" && certificate.ended === "clean";
}

function windowOf({ from, to }: { from: string; to: string }): string {
  return `${from} ${to}`;
}

function shrunk(now: number, held: number, where: string): RunvaultError {
  return new RunvaultError(
    "shrunk",
    `the gateway now holds ${now} rows${where}, the archive ${held}: the archive never shrinks by itself`,
    { hint: "If the rows are rightly gone at the gateway, run again with --accept-shrink." },
  );
}

function isUnavailable(error: unknown): boolean {
  return error instanceof RunvaultError && error.code === "history_unavailable";
}

function sumRows(windows: readonly HeldWindow[]): number {
  return windows.reduce((sum, { rows }) => sum + rows, 0);
}

function isAbort(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error.name === "AbortError" || (error as { code?: string }).code === "interrupted")
  );
}

/** What came before the gateway failed is whole; what came before it lied is not to be trusted. */
function worthKeeping(error: RunvaultError): boolean {
  return error.exit === exit.gateway || error.code === "timestamp_capped";
}

function failureOf(error: RunvaultError, at: string) {
  const again =
    error.retry === "again" ? "Run the same command again: it goes on from what is already fetched." : null;
  const message = error.place.slice === undefined ? error.message : `${error.message} (${error.place.slice})`;
  return { code: error.code, message, hint: error.hint ?? again, at };
}
