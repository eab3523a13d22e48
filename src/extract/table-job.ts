import { createHash } from "node:crypto";
import type PQueue from "p-queue";
import type { ExactTypes } from "../archive/convert-types.ts";
import type { SurveyRecord } from "../archive/journal.ts";
import type { RowHash, TableManifest, TableState } from "../archive/manifest.ts";
import type { Pending } from "../archive/pending.ts";
import { readSegment } from "../archive/segment.ts";
import { exit, RunvaultError } from "../model/error.ts";
import type { StorageFacts, TableFacts } from "../model/source.ts";
import { type Table, type TableName, tableNames } from "../model/table.ts";
import type { Nanoseconds } from "../model/time.ts";
import { askPlan } from "./ask-plan.ts";
import type { BucketConverter } from "./bucket-converter.ts";
import { isDisproven, isOutdated } from "./committed-table.ts";
import { fetchBuckets } from "./fetch-buckets.ts";
import { fetchSlice, type Slice, type SliceWork } from "./fetch-slice.ts";
import { heldWindows, sumRows, windowKey } from "./held-window.ts";
import type { FetchPlan } from "./plan.ts";
import { type RunKnowledge, settledVersion } from "./run-knowledge.ts";
import type { CountRows } from "./run-outlook.ts";
import { countSlice, isBucketToFetch, slicesOf } from "./slices.ts";
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
  #surveyedRows = 0;
  #plan: FetchPlan | undefined;

  constructor(table: Table, context: RunContext, countRows: CountRows | undefined) {
    this.table = table;
    this.#context = context;
    this.#countRows = countRows;
    this.#former = context.committed[table.name];
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
    const { pending, until, run, sliceRows, acceptShrink } = this.#context;
    const { name } = this.table;
    const held = pending.held.of(name);
    const known = { table: name, run, until, facts, held, former: this.#former, sliceRows, acceptShrink };
    const plan = await askPlan(known, { countRows: this.#countRows, survey: () => this.#survey() });
    await pending.dropSegments(name, plan.drop);
    if (plan.kind === "absent") {
      this.absent = true;
      return;
    }
    this.#plan = plan;
    this.rowsToFetch = plan.rows;
    this.#context.onPlan(this.table, plan.rows + this.#surveyedRows);
  }

  /** Fetches what the plan says, and converts each bucket as soon as all of it is here. */
  async fetch(): Promise<void> {
    const plan = this.#plan;
    if (plan === undefined) return;
    const { slices, pending, run, work } = this.#context;
    const { name } = this.table;
    // not before: facts that nothing has room for decide nothing
    if (pending.held.of(name).grain === null && plan.spanRows > 0) await pending.setGrain(name, plan.grain);
    // buckets that need no fetching, but lost or never got their Parquet
    const ready = pending.held.of(name).segments.filter(({ from }) => !isBucketToFetch(plan, BigInt(from)));
    const converted = [...new Set(ready.map(({ bucket }) => bucket))].map((bucket) => this.#convert(bucket));
    const fetched = fetchBuckets({
      slices: slicesOf(run, this.table, plan),
      queue: slices,
      // table after table, so that the buckets of the first are converted while the others are on their way
      priority: -tableNames.indexOf(name),
      signal: work.signal,
      fetch: (slice, signal) => this.#fetchSlice(slice, signal),
      convert: (bucket) => this.#convert(bucket),
    });
    for (const outcome of await Promise.allSettled([fetched, ...converted])) {
      if (outcome.status === "rejected") throw outcome.reason;
    }
    this.#plan = undefined;
  }

  /** Holds what is here against the facts. True when some windows must be fetched again, which are then planned. */
  async reconcile(facts: StorageFacts | null): Promise<boolean> {
    const own = facts?.get(this.table.name);
    const windows = heldWindows(this.#context.pending.held.of(this.table.name));
    if (own === undefined || Number(own.rows) === sumRows(windows) || this.#countRows === undefined)
      return false;
    await this.plan(facts);
    const plan = this.#plan;
    if (plan === undefined) return false;
    // what was dropped takes its bucket's Parquet with it, even where nothing comes in its place
    return plan.drop.length > 0 || plan.gaps.length > 0;
  }

  /** The table as the manifest will have it. */
  async result(facts: StorageFacts | null, checkedAt: string): Promise<TableManifest> {
    const { pending, until, run, exactTypes } = this.#context;
    const held = pending.held.of(this.table.name);
    const common = {
      grain: held.grain ?? ("all" as const),
      exactTypes: { ...exactTypes(this.table.name) },
      storageVersion: settledVersion(run),
    };
    const own = facts?.get(this.table.name);
    if (this.absent && own !== undefined && own.rows > 0n) {
      this.absent = false;
      this.error = new RunvaultError(
        "incomplete",
        `the gateway said that it keeps no such table, and now counts ${own.rows} rows of it`,
        { hint: "Run the same command again." },
      );
    }
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
      .filter(({ file }) => segments.length > 0 && pending.held.isConverted(this.table.name, file.bucket))
      .sort((a, b) => (a.file.bucket < b.file.bucket ? -1 : 1));
    const windows = new Set(segments.map(windowKey));
    const quarantine = held.quarantine.filter((file) => windows.has(windowKey(file)));
    const quarantined = quarantine.reduce((sum, { rows }) => sum + rows, 0);
    const rows = segments.reduce((sum, segment) => sum + segment.rows, 0);
    const proof = this.error === null ? await this.#proof(own, rows + quarantined) : "none";
    const converted = parquet.reduce((sum, { file }) => sum + file.rows, 0);
    if (this.error === null && converted !== rows) {
      throw new RunvaultError(
        "internal",
        `${converted} of ${rows} rows of ${this.table.name} are in Parquet`,
      );
    }
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
    const { segments } = pending.held.of(this.table.name);
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
    return await fingerprint(this.table, await Promise.all(files.map((file) => pending.held.locate(file))));
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
    const { survey, segments, quarantine } = this.#context.pending.held.of(this.table.name);
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
      hash.update(await readSegment(await this.#context.pending.held.locate(segment.file), segment));
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

  /** What a pass over all of the table finds; `absent` where the first answer says that there is no such table. */
  async #survey(): Promise<SurveyRecord | "absent"> {
    const { pending, until, run, work, slices, onSurveyed } = this.#context;
    const onRows = (rows: number, bytes: number) => {
      this.#surveyedRows += rows;
      onSurveyed(this.table, rows, bytes);
    };
    // what was held so far can't be asked about: only a pass over all of it tells
    const pass = () => slices.add(() => surveyTable(run, this.table, until, { ...work, onRows }));
    let survey: SurveyRecord;
    try {
      survey = await pass();
      // an answer cut ahead of its first row looks like an empty table, of which there is no second pass
      if (survey.rows === 0) survey = await pass();
    } catch (error) {
      if (this.#surveyedRows > 0 || !isUnavailable(error)) throw error;
      return "absent";
    }
    await pending.setSurvey(this.table.name, survey);
    return survey;
  }

  async #fetchSlice(planned: Slice, signal: AbortSignal): Promise<void> {
    const { pending, work, onRows } = this.#context;
    const slice = await countSlice(planned, this.#countRows);
    if (slice === null) return;
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
      const stale = pending.held
        .of(name)
        .segments.filter((s) => BigInt(s.from) >= from && BigInt(s.to) <= to);
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
    if (pending.held.isConverted(this.table.name, bucket)) return;
    await converter.convert(pending, run, this.table, bucket);
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof RunvaultError && error.code === "history_unavailable";
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
