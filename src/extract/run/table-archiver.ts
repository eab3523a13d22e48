import { createHash } from "node:crypto";
import { driftOf } from "../../archive/convert/drift.ts";
import { tooNarrowColumns } from "../../archive/convert/too-narrow-columns.ts";
import { type Evidence, everything } from "../../archive/manifest/evidence.ts";
import {
  type Attempt,
  type AttemptOutcome,
  type Certificate,
  type Holding,
  type ParquetFile,
  type Proven,
  type QuarantineFile,
  type Segment,
  type TableManifest,
  tableState,
} from "../../archive/manifest/manifest.ts";
import { latestView, lieApart } from "../../archive/manifest/table-view.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { type Table, type TableName, tableNames } from "../../model/profile/table.ts";
import type { HistorySource, StorageFacts, TableFacts } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { formatTime, type Nanoseconds, type TimeBounds } from "../../model/time.ts";
import type { RowHash } from "../../row/row-hash.ts";
import { piecesWithoutOddZeros } from "../../row/strict-line.ts";
import { type EvidenceRecord, isOfOtherVersion, windowOf } from "../evidence/evidence-record.ts";
import { atLeast, type Lack, lacking } from "../evidence/lacking.ts";
import { WindowRows } from "../evidence/window-rows.ts";
import { fetchBuckets } from "../fetch/fetch-buckets.ts";
import { askPlan, saidNone } from "../plan/ask-plan.ts";
import { agreedUntil, changedWindows } from "../plan/changed-windows.ts";
import { isAbsentStill, isOutdated, provenSegments } from "../plan/committed-table.ts";
import { compareHeld, type DifferingWindow, isAsSeen } from "../plan/compare-held.ts";
import { firstTime } from "../plan/full-scan.ts";
import {
  contiguous,
  type HeldWindow,
  heldWindows,
  ofAboutRows,
  sumRows,
  type Window,
  windowKey,
} from "../plan/held-window.ts";
import {
  type FetchPlan,
  type LapsedPlan,
  type RestoreStep,
  type SplitStep,
  shrunk,
  vanished,
} from "../plan/plan.ts";
import { needsEnd, type Route, routeOf } from "../plan/route.ts";
import { isBucketToFetch, slicesOf } from "../plan/slices.ts";
import { isRefusal, linesOf, probe, timeOf } from "../plan/table-asks.ts";
import { isSaidNone } from "../plan/wanted-tables.ts";
import { isRefusedByRoute } from "../proof/absent-table.ts";
import { formerGrounds, proveFilled, standingGrounds } from "../proof/filled-table.ts";
import { grounds, heldGrounds, unseen } from "../proof/grounds.ts";
import { comparableHash, type GatewayHash, gatewayHash } from "../proof/hashed.ts";
import { requireNone, rowsOutside } from "../proof/outer-ends.ts";
import { type AttemptMark, markOf, type ProvenMark, provenStanding } from "../proof/proven-standing.ts";
import { isProofEnough, weakerProof } from "../proof/required-proof.ts";
import { type Extent, type Rung, windowText } from "../proof/rungs.ts";
import { countedBySummary, type FilledExtent, proveEmpty } from "../proof/zero-rows.ts";
import { HeldRows, inOrder, quarantinedRows, rowsIn, tolerating } from "./held-rows.ts";
import { learnSegments, letGoSegments } from "./let-go.ts";
import { lookAtPassBefore } from "./pass-before.ts";
import { asksOf, type RunContext } from "./run-context.ts";
import type { CountRows } from "./run-horizon.ts";
import { extentOf, passOverRows, type Scan, scanAll } from "./scan-passes.ts";
import { type AloneOnRung, type Disagreement, liesIn, storeSlice } from "./store-slice.ts";

type Proof = Certificate["proof"];
type CertifiedHolding = Holding & { readonly certificate: Certificate };

/** One table of one run on its way into the archive. */
export class TableArchiver {
  readonly table: Table;
  error: RunvaultError | null = null;
  absent = false;
  readonly #context: RunContext;
  readonly #countRows: CountRows | undefined;
  readonly #former: TableManifest | undefined;
  readonly #scan: Scan;
  /** Why the rows are not proven, though counts or two passes agree. */
  #doubt: RunvaultError | null = null;
  #plan: FetchPlan | undefined;
  #lapsed: LapsedPlan | undefined;
  /** The bounds within which a single answer of this job brought all rows and no others. */
  #alone: AloneOnRung | undefined;
  /** The row hash of all held rows, once it was needed. */
  #wholeHash: RowHash | null = null;
  /** True once the job has tried what an earlier one could not convert. */
  #isHeldTried = false;
  /** True once held rows have been streamed again. */
  #compared = false;
  /** Some rows differed when they were streamed because the version had changed. */
  #isOther = false;
  /** The gateway's row checksum equals that of the held rows, so they were not streamed. */
  #isSameByHash = false;
  /** The gateway's row checksum differs from that of the rows here. */
  #isHashOther = false;
  /** The hash of the full scan that brought the rows here, printed differently. */
  #sameScan: string | undefined;
  /** Windows fetched by this job that the gateway counts differently. */
  #disagreeing: Disagreement[] = [];
  /** Up to where the facts of an unfinished run agree with its rows; facts may lag behind. */
  #agreedUntil: Nanoseconds | undefined;
  /** Where the gateway's rows begin, if earlier ones are gone there. */
  #gatewayFrom: Nanoseconds | undefined;
  /** Where rows were that this command was told of or sent, and that retention has taken since. */
  #retained: Window | undefined;
  /** Where the gateway's rows began by the facts of the last plan. */
  #plannedFirst: Nanoseconds | undefined;
  /** Rows kept beside the proven ones, because they were never proven. */
  #rowsBeside = 0;
  /** Where rows may have come and gone at the gateway. */
  #unseen: Window | undefined;
  /** Differing windows from the last comparison, dropped until they are fetched. */
  #changed: readonly DifferingWindow[] = [];
  /** Where rows changed each time they were fetched. */
  #restless: readonly Window[] = [];
  /** The segment whose first row was last looked at. */
  #looked: { readonly file: string; readonly first: string | null } | undefined;

  #summaryNote: string | undefined;

  readonly #route: Route;
  /** First and last time of the rows that came, if the table comes whole each time. */
  #seen: Extent | undefined;

  /** What was reported and sent about the table. */
  readonly #record: EvidenceRecord;
  readonly #here: WindowRows;
  /** Segments before the gateway's rows that were noted as evidence. */
  readonly #apart = new Set<string>();
  #unmet: readonly Evidence[] = [];
  /** Evidence of an earlier job, dropped because all looks since agree on less. */
  #outlived: Lack | undefined;
  /** Evidence from another version, dropped because the run's is new. */
  #outdated: Lack | undefined;

  /** Segments that an earlier job committed. */
  readonly #formerFiles: ReadonlySet<string>;
  readonly #isProven: (segment: Segment) => boolean;
  readonly #rows: HeldRows;

  constructor(table: Table, context: RunContext, countRows: CountRows | undefined) {
    this.table = table;
    this.#context = context;
    this.#countRows = countRows;
    this.#former = context.committed[table.name];
    this.#route = routeOf(context.work.source, table);
    const found = { rows: 0, came: { rows: 0, first: null }, rung: undefined };
    this.#scan = { table, context, former: this.#former, found };
    this.#record = context.evidence.of(table.name);
    const { journal } = context;
    const ends = () => this.#endsHere() ?? { first: undefined, last: undefined };
    const isKeyed = this.#route.numbers === "given";
    this.#here = new WindowRows(
      table,
      journal.held.of(table.name),
      (part) => journal.textOf(part),
      isKeyed,
      ends,
    );
    this.#formerFiles = new Set(latestView(this.#former)?.segments.map(({ file }) => file));
    this.#isProven = provenSegments(this.#former);
    this.#rows = new HeldRows(table, context, this.#former, (bucket, of) => this.#convert(bucket, () => of));
  }

  /** True if the table can only be fetched whole, so nothing can be requested around it. */
  get #comesWhole(): boolean {
    return !this.#route.bounds.from;
  }

  get #isSaidNone(): boolean {
    return isSaidNone(this.#context.work.source, this.table);
  }

  /** Further grounds of the proof, in words, besides counts or two passes. */
  restsOn: readonly string[] = [];
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

  /** Records an error that overrules the table's result; an ABSENT table loses that state. */
  contradict(error: RunvaultError | undefined): void {
    if (error === undefined || this.error !== null) return;
    this.absent = false;
    this.error = error;
  }

  /** Decides what is still to fetch, from the facts within the horizon or, without any, from a full scan. */
  async plan(facts: StorageFacts | null): Promise<void> {
    await this.#byFacts(facts, (latest) => this.#planOnce(latest));
  }

  /**
   * Acts on facts or, without them, on a full scan. If rows are missing because the gateway has dropped its earliest
   * meanwhile, it acts again on later facts, a few times; then `isAgain` is true.
   */
  async #byFacts<T>(
    facts: StorageFacts | null,
    act: (facts: StorageFacts | null, isAgain: boolean) => Promise<T>,
    left = mostBeginnings,
  ): Promise<T> {
    try {
      return await act(facts, left < mostBeginnings);
    } catch (thrown) {
      const isShrunk = thrown instanceof RunvaultError && thrown.code === "shrunk";
      const now = isShrunk && left > 0 ? await this.#begunLater(facts) : undefined;
      if (now === undefined) throw thrown;
      return await this.#byFacts(now, act, left - 1);
    }
  }

  /**
   * New facts, if they show that the gateway's rows begin later or are gone: missing rows may be those it dropped. Without
   * facts the first row is requested, and if it is gone, the full scan is forgotten. Undefined if the rows begin as before.
   */
  async #begunLater(facts: StorageFacts | null): Promise<StorageFacts | null | undefined> {
    const { work, run, until, journal } = this.#context;
    const held = journal.held.of(this.table.name);
    const before = extentOf(facts?.get(this.table.name) ?? held.fullScan)?.first;
    if (before === undefined) return undefined;
    if (facts !== null) {
      const now = await this.#noting.facts(run, until === undefined ? {} : { to: until }, work.signal);
      const own = now?.get(this.table.name);
      return own !== undefined && (own.first === undefined || own.first > before) ? now : undefined;
    }
    if (!this.#route.bounds.from) return undefined;
    const asks = asksOf(this.table, this.#context);
    const row = await probe(asks, { from: before, to: before + 1n }).catch((error: unknown) => {
      if (!isRefusal(error)) throw error;
      return "refused";
    });
    if (row !== undefined) return undefined;
    held.fullScan = null;
    return null;
  }

  async #planOnce(facts: StorageFacts | null): Promise<void> {
    const { journal, until, run, sliceRows, acceptShrink } = this.#context;
    const { name } = this.table;
    await this.#dropTooWide();
    const held = journal.held.of(name);
    const former = this.#former;
    const known = {
      ...{ table: name, run, until, facts: this.#atLeast(facts), held, former, sliceRows, acceptShrink },
      comesWhole: this.#comesWhole,
      needsEnd: needsEnd(this.#route),
      came: await this.#firstUnproven(),
    };
    const plan = this.#isSaidNone
      ? await askPlan({ ...known, facts: null }, saidNone)
      : await askPlan(known, {
          countRows: this.#countRows,
          fullScan: () => scanAll(this.#scan),
          split: (step) => this.#split(step),
          restore: (step) => this.#restore(step),
        });
    this.#plannedFirst = facts?.get(name)?.first;
    this.#lapsed = plan.kind === "lapsed" ? plan : undefined;
    if (plan.kind === "lapsed") {
      await this.#requireNoneProven();
      return await this.#keepWhole();
    }
    await letGoSegments(this.table, this.#context, plan.drop);
    if (plan.kind === "absent") {
      if (!this.#isSaidNone && !isAbsentStill(this.#former, this.#context.run))
        await this.#requireUnavailable(facts);
      this.absent = true;
      return;
    }
    this.#gatewayFrom = plan.gatewayFrom ?? this.#retained?.to;
    if (this.#isToCompare && !this.#compared && (await this.#compare())) return await this.plan(facts);
    this.#plan = plan;
    this.rowsToFetch = plan.rows;
    this.#context.onPlan(this.table, plan.rows + this.#scan.found.rows);
  }

  /** Facts, or for this table what was reported before if that was more. */
  #atLeast(facts: StorageFacts | null): StorageFacts | null {
    const own = facts?.get(this.table.name);
    if (facts === null || own === undefined) return facts;
    const merged = atLeast(own, this.#record, this.#context.until);
    return new Map([...facts, [this.table.name, merged]]);
  }

  /** True if this attempt may prove rows, or for the first time that the table is absent. */
  get mayProve(): boolean {
    return this.#isJudged || (this.absent && this.#former?.proven == null);
  }

  /** What falls short here of what was reported or sent; nothing for a table that failed or is kept as it is. */
  async lacking(): Promise<Lack[]> {
    if (!this.#isJudged) return [];
    await this.#learnApart();
    return await this.#lackingNow();
  }

  /** Leaves out rows that the gateway no longer shows: they are kept beside what is to be proven. */
  async #lackingNow(): Promise<Lack[]> {
    const { evidence, until } = this.#context;
    const here = this.#here.now((segment) => this.#isApart(segment));
    return await lacking(this.#record, here, until, evidence.version);
  }

  /** Records as evidence, once, rows that came in this command from before the gateway's present beginning. */
  async #learnApart(): Promise<void> {
    const { segments } = this.#context.journal.held.of(this.table.name);
    const isNew = ({ file, partOf = file }: Segment) =>
      !this.#apart.has(file) && !this.#formerFiles.has(file) && !this.#formerFiles.has(partOf);
    const apart = segments.filter((segment) => this.#isApart(segment) && isNew(segment));
    await learnSegments(this.table, this.#context, apart);
    for (const { file } of apart) this.#apart.add(file);
  }

  /** Plans what is lacking once more, with bounds that no request has used yet. */
  async planAgain(facts: StorageFacts | null, lacks: readonly Lack[], look: number): Promise<void> {
    if (!this.#isJudged) return;
    const isProven = provenSegments(this.#former);
    const { sliceRows } = this.#context;
    // with many rows, counts find the windows that differ, except those with as many other rows
    const areCountsEnough = this.#countRows !== undefined && this.#comparedRows() > sliceRows;
    const windows = lacks
      .filter(({ seen, here }) => !areCountsEnough || here.rows >= seen.rows)
      .map(({ seen }) => windowOf(seen));
    if (facts === null) this.#context.journal.held.of(this.table.name).fullScan = null;
    await this.#dropSegments((segment) => {
      const overlaps = windows.some(({ from, to }) => BigInt(segment.from) < to && BigInt(segment.to) > from);
      // what only the archive still has is not requested again
      const isHere = isProven(segment) || this.#isApart(segment);
      return overlaps && !isHere;
    });
    await this.plan(facts);
    if (this.#plan === undefined) return;
    const apart = ({ from, to }: Window): Window[] => {
      const at = to - BigInt(look);
      return at > from
        ? [
            { from, to: at },
            { from: at, to },
          ]
        : [{ from, to }];
    };
    this.#plan = { ...this.#plan, gaps: this.#plan.gaps.flatMap(apart) };
  }

  /**
   * Drops evidence from before the gateway's present beginning, if six requests on new connections find nothing before it.
   */
  async letGoRetained(facts: StorageFacts | null, lacks: readonly Lack[]): Promise<void> {
    const { journal } = this.#context;
    const begin = extentOf(facts?.get(this.table.name) ?? journal.held.of(this.table.name).fullScan)?.first;
    const earlier = lacks.filter(
      ({ seen }) => begin !== undefined && BigInt(seen.first ?? seen.from) < begin,
    );
    if (begin === undefined || earlier.length === 0 || this.#record.movesBack || !this.#route.bounds.from)
      return;
    const from = earlier.map(({ seen }) => BigInt(seen.first ?? seen.from)).reduce((a, b) => (a < b ? a : b));
    if (!(await this.#isNoneIn({ from, to: begin }))) return;
    // what was proven stays, and what an earlier job saw is named as its own
    const proven = this.#former?.proven?.certificate;
    if (proven == null && earlier.some(({ seen }) => !seen.isOlder)) {
      // it may go on while the table is read
      this.#retained = { from: this.#retained?.from ?? from, to: begin };
      this.#gatewayFrom = begin;
    }
    const isEarlier = (seen: Evidence) => BigInt(seen.first ?? seen.from) < begin;
    const cut = this.#record.items.filter((seen) => isEarlier(seen) && BigInt(seen.to) > begin);
    this.#record.letGo(isEarlier);
    // the windows that the new beginning cuts: their last row is still there, and their rest is counted anew
    for (const { firstKey: _, ...seen } of cut) {
      if (seen.last === null || BigInt(seen.last) < begin) continue;
      this.#record.learn({ ...seen, from: begin.toString(), rows: 1, first: null, hash: null });
    }
    const ends = new Set(cut.filter(({ by }) => by === "told").map(({ to }) => BigInt(to)));
    for (const to of ends) await this.#countRows?.(begin, to);
  }

  /** True if six requests for a window, on new connections, bring nothing. */
  async #isNoneIn({ from, to }: Window): Promise<boolean> {
    const { work, slices } = this.#context;
    for (let question = 1; question <= questionsAhead; question++) {
      work.source.reconnect?.();
      const window = { from: from - BigInt(question), to };
      if ((await slices.add(() => probe(asksOf(this.table, this.#context), window))) !== undefined)
        return false;
    }
    return true;
  }

  /**
   * Drops evidence of an earlier job if eight looks agree with what is here: the gateway has no more now, whatever it had
   * then. `look` returns new facts.
   */
  async letGoOlder(lacks: readonly Lack[], look: () => Promise<StorageFacts | null>): Promise<void> {
    if (lacks.some(({ seen }) => !seen.isOlder)) return;
    for (let number = 0; number < looksAtOlder; number++) {
      this.#context.work.source.reconnect?.();
      if (!(await this.#agreesNow(await look(), lacks))) return;
    }
    this.#outlived = lacks.reduce(mostSeen, undefined);
    this.#record.letGo((seen) => seen.isOlder === true && this.#mayLetGo(seen));
  }

  /** Drops evidence from versions other than the run's, which is new and stable. */
  letGoOtherVersions(lacks: readonly Lack[]): void {
    const { version } = this.#context.evidence;
    const isToGo = (seen: Evidence) => isOfOtherVersion(seen, version) && this.#mayLetGo(seen);
    this.#outdated = lacks.filter(({ seen }) => isToGo(seen)).reduce(mostSeen, undefined);
    this.#record.letGo(isToGo);
  }

  /** Rows that came outweigh an answer of none, however often it is given. */
  #mayLetGo({ by }: Evidence): boolean {
    return by === "told" || this.#comparedRows() > 0;
  }

  async #agreesNow(facts: StorageFacts | null, lacks: readonly Lack[]): Promise<boolean> {
    const { held } = this.#context.journal;
    if (facts === null) {
      const before = held.of(this.table.name).fullScan;
      const now = await scanAll(this.#scan);
      return now !== "absent" && now.rows === before?.rows && now.sha256 === before.sha256;
    }
    if (Number(facts.get(this.table.name)?.rows ?? 0n) !== this.#comparedRows()) return false;
    const countRows = this.#countRows;
    if (countRows === undefined) return true;
    for (const { seen, here } of lacks) {
      const { from, to } = windowOf(seen);
      if ((await countRows(from, to)) > here.rows) return false;
    }
    return true;
  }

  /** How the rows here fall short of what was seen; null if they do not. */
  async #shortfall(facts: StorageFacts | null): Promise<RunvaultError | null> {
    const lacks = await this.lacking();
    if (lacks.length === 0 || this.#context.acceptShrink) return null;
    const { held } = this.#context.journal;
    const { seen, here } = lacks.reduce((a, b) =>
      b.seen.rows - b.here.rows > a.seen.rows - a.here.rows ? b : a,
    );
    const own = facts?.get(this.table.name);
    const total = own === undefined ? held.of(this.table.name).fullScan?.rows : Number(own.rows);
    const latest = seen.by === "told" ? this.#record.latestOf(seen) : undefined;
    const when = seen.isOlder ? "to an earlier attempt" : "to this command";
    const what = seen.by === "told" ? "reported" : "sent";
    const where =
      seen.from === everything.from && seen.to === everything.to ? "" : ` in ${windowText(windowOf(seen))}`;
    const message = `the gateway ${what} ${countText(seen.rows, "row")}${where} ${when}, but ${here.rows}${here.rows >= seen.rows ? " others" : ""} are here`;
    const isStill = (latest ?? 0) > here.rows || (total ?? 0) > this.#comparedRows();
    return new RunvaultError(isStill ? "incomplete" : "unverified", message, {
      hint: "The gateway's answers contradict each other, as nodes with different rows do. Run the same command again; if it happens again, ask the gateway's operator.",
    });
  }

  /**
   * Values that stopped the table before may have been corrected at the gateway since: segments that still do not fit their
   * columns are fetched again, unless they were proven.
   */
  async #dropTooWide(): Promise<void> {
    if (this.#isHeldTried || this.#former?.attempt.error?.code !== "value_out_of_range") return;
    this.#isHeldTried = true;
    const { journal } = this.#context;
    const { name } = this.table;
    const isProven = provenSegments(this.#former);
    for (const bucket of new Set(journal.held.of(name).segments.map((segment) => segment.bucket))) {
      try {
        await this.#convert(bucket);
      } catch (error) {
        if (!(error instanceof RunvaultError) || error.wider === undefined) throw error;
        const dropped = journal.held.segmentsOf(name, bucket).filter((segment) => !isProven(segment));
        await journal.dropSegments(name, dropped);
      }
    }
  }

  /** The earliest ts_event of held rows that were never proven; undefined if there are none. */
  async #firstUnproven(): Promise<Nanoseconds | undefined> {
    const { journal } = this.#context;
    const isUnproven = (segment: Segment) => segment.rows > 0 && !this.#isProven(segment);
    const segment = journal.held.of(this.table.name).segments.find(isUnproven);
    if (segment === undefined) return undefined;
    if (this.#looked?.file !== segment.file) {
      const [whole] = await this.#rows.whole([segment]);
      const first = whole === undefined ? null : await firstTime(await journal.textOf(whole));
      this.#looked = { file: segment.file, first };
    }
    return this.#looked.first === null ? undefined : BigInt(this.#looked.first);
  }

  /** True when this job made a pass over all of the table. */
  get isScanned(): boolean {
    return this.#scan.found.rows > 0;
  }

  /** Compares all held rows with the source's again, because its version has changed, and drops what differs. */
  async streamAgain(facts: StorageFacts | null): Promise<void> {
    if (this.#lapsed !== undefined) return;
    this.#alone = undefined;
    this.#isOther = await this.#byFacts(facts, async (latest, isAgain) => {
      if (isAgain) await this.plan(latest);
      return await this.#compare(true);
    });
  }

  /** Plans what was dropped then or is missing now. True if there is any. */
  async planStreamed(facts: StorageFacts | null): Promise<boolean> {
    if (this.#lapsed !== undefined) return false;
    // what a full scan found belongs to the earlier version, too
    if (facts === null) this.#context.journal.held.of(this.table.name).fullScan = null;
    else if (!this.#isOther) return false;
    await this.plan(facts);
    return this.#isOther || (await this.#disagreementByRows()) !== null;
  }

  /**
   * True if held rows have to be streamed once more, because counts do not show changes in place: the run is final and was
   * archived while it grew, or has another version now, or a recheck is requested.
   */
  get #isToCompare(): boolean {
    const { run, finalPass, recheck, isChanged } = this.#context;
    if (this.#countRows === undefined || !(run.final || isChanged)) return false;
    if (recheck || (this.#grewHere && finalPass === "rows")) return true;
    // proven rows that came differently since: counts do not show that today either
    const { proven, attempt } = this.#former ?? {};
    if (proven?.state === "COMPLETE" && attempt?.error?.code === "unverified") return true;
    return this.#former !== undefined && isOutdated(latestView(this.#former), run);
  }

  /** True if some held rows came before the run had ended. */
  get #grewHere(): boolean {
    const former = this.#former;
    if (this.#context.journal.held.resumedGrowing || former?.proven?.state === "OPEN") return true;
    return former !== undefined && (latestView(former).certificate?.until ?? null) !== null;
  }

  /**
   * Compares held rows with the source's, once per job, and drops what differs. True if anything does. `afresh`: also what
   * was compared or fetched before. `within`: only what lies in these windows.
   */
  async #compare(afresh = false, within?: readonly Window[]): Promise<boolean> {
    const { journal, run, work, slices, sliceRows } = this.#context;
    const { name } = this.table;
    const held = journal.held.of(name);
    const from = this.#gatewayFrom;
    const isEqual = ({ segments }: HeldWindow) => segments.every(({ file }) => held.compared.has(file));
    // where rows are not counted, what this job fetched is compared with its own full scan
    const isFormer = ({ file, partOf }: Segment) =>
      this.#formerFiles.has(file) || (partOf !== undefined && this.#formerFiles.has(partOf));
    const isOwn = ({ segments }: HeldWindow) =>
      !afresh && this.#countRows === undefined && !segments.every(isFormer);
    const windows = heldWindows(held).filter(
      (window) =>
        (from === undefined || window.to > from) &&
        (afresh || !isEqual(window)) &&
        !isOwn(window) &&
        (within === undefined || within.some((one) => overlaps(one, window))),
    );
    const onEqual = ({ segments }: HeldWindow) =>
      journal.addCompared(
        name,
        segments.map(({ file }) => file),
      );
    const compare = (stretch: readonly HeldWindow[]) =>
      slices.add(() =>
        compareHeld({
          run,
          table: this.table,
          windows: stretch,
          work: {
            ...work,
            countRows: this.#countRows,
            onRows: (rows, bytes) => this.#context.onScanned(this.table, rows, bytes),
          },
          read: async (segment) => await journal.textOf(segment),
          onEqual,
        }),
      );
    if (windows.length > 0 && within === undefined && (await this.#hasHashOf(windows))) {
      this.#compared = true;
      this.#isSameByHash = true;
      return false;
    }
    const stretches = contiguous(windows).flatMap((stretch) => ofAboutRows(stretch, sliceRows));
    const differing: DifferingWindow[] = [];
    for (const outcome of await Promise.allSettled(stretches.map(compare))) {
      if (outcome.status === "rejected") throw outcome.reason;
      for (const window of outcome.value) differing.push(window);
    }
    this.#compared = true;
    const isProven = provenSegments(this.#former);
    const { version } = this.#context.evidence;
    for (const { from, to, rows, segments, rowsThere } of differing) {
      const window = { from: from.toString(), to: to.toString() };
      const seen = { ...window, rows: rowsThere, first: null, last: null, hash: null, version };
      if (rowsThere > rows) this.#record.learn({ by: "brought", ...seen });
      if (this.#context.acceptShrink || rowsThere >= rows) continue;
      if (segments.every(isProven)) throw shrunk(rowsThere, rows, ` in [${from}, ${to})`);
    }
    await letGoSegments(
      this.table,
      this.#context,
      differing.flatMap(({ segments }) => segments),
      within !== undefined,
    );
    this.#changed = differing;
    return differing.length > 0;
  }

  /**
   * Fetches what is planned, and converts each bucket as soon as it is complete. `onFetched` is called once all rows are
   * here, even if some are still being converted. A value that does not fit its column stops neither: the rows stay for
   * when the column is wider, and one error reports all such values.
   */
  async fetch(onFetched = () => {}): Promise<void> {
    const plan = this.#plan;
    if (plan === undefined) return onFetched();
    await this.#fetchPlan(plan, onFetched);
    await this.#confirm(plan);
  }

  async #fetchPlan(plan: FetchPlan, onFetched: () => void): Promise<void> {
    if (plan.gaps.length > 0) this.#alone = this.#sameScan = undefined;
    const { slices, journal, run } = this.#context;
    const { name } = this.table;
    // only now: facts that no disk has room for decide nothing
    if (journal.held.of(name).grain === null && plan.spanRows > 0) await journal.setGrain(name, plan.grain);
    // buckets that need no fetching, but lost or never got their Parquet
    const ready = journal.held.of(name).segments.filter(({ from }) => !isBucketToFetch(plan, BigInt(from)));
    let tooNarrow: RunvaultError | undefined;
    const convert = async (bucket: string) => {
      try {
        await this.#convert(bucket);
      } catch (error) {
        if (!(error instanceof RunvaultError) || error.wider === undefined) throw error;
        tooNarrow ??= error;
      }
    };
    const converted = [...new Set(ready.map(({ bucket }) => bucket))].map(convert);
    const storing = {
      table: this.table,
      context: this.#context,
      countRows: this.#countRows,
      isNothingPlanned: this.rowsToFetch === 0,
      onDisagreement: (window: Disagreement) => this.#disagreeing.push(window),
      onAlone: (alone: AloneOnRung) => {
        this.#alone = alone;
      },
      onSeen: (seen: Extent) => {
        this.#seen = around(this.#seen, seen);
      },
    };
    const fetched = fetchBuckets({
      slices: slicesOf(run, this.table, plan),
      queue: slices,
      // table after table, so that the buckets of the first are converted while the others are fetched
      priority: -(this.#context.order * tableNames.length + tableNames.indexOf(name)),
      signal: this.#context.fetching,
      fetch: (slice, signal) => storeSlice(slice, signal, storing),
      convert,
      onFetched,
    });
    for (const outcome of await Promise.allSettled([fetched, ...converted])) {
      if (outcome.status === "rejected") throw outcome.reason;
    }
    if (tooNarrow !== undefined) {
      const { exactTypes } = this.#context;
      throw await tooNarrowColumns(tooNarrow, this.table, exactTypes(this.table.name), this.#heldTexts());
    }
    this.#plan = undefined;
  }

  /**
   * Compares what came in place of differing rows with what the comparison saw. If it differs again, it is compared and
   * fetched once more; rows that change in between stay as they are then.
   */
  async #confirm(plan: FetchPlan): Promise<void> {
    for (let isLast = false; ; isLast = true) {
      const others = await this.#unlikeSeen();
      const [window] = others;
      if (window === undefined) return;
      if (isLast) {
        this.#restless = others;
        this.#doubt ??= new RunvaultError(
          "unverified",
          `rows in ${windowText(window)} changed each time they were fetched`,
          { hint: "Run the same command again once the run no longer changes at the gateway." },
        );
        return;
      }
      if (!(await this.#compare(true, others))) return;
      await this.#fetchPlan({ ...plan, gaps: this.#changed }, () => {});
    }
  }

  /** Stretches fetched because they differed, whose rows are not those that the comparison saw. */
  async #unlikeSeen(): Promise<Window[]> {
    const { journal } = this.#context;
    const { segments, quarantine } = journal.held.of(this.table.name);
    const others: Window[] = [];
    for (const stretch of contiguous(this.#changed)) {
      const window = { from: stretch[0]!.from, to: stretch.at(-1)!.to };
      const isHere = (one: Segment | QuarantineFile) => overlaps(one, window);
      // rows that were set aside are no longer in the text
      if (quarantine.some(isHere)) continue;
      const read = (segment: Segment) => journal.textOf(segment);
      if (!(await isAsSeen(this.table, stretch, segments.filter(isHere), read))) others.push(window);
    }
    this.#changed = [];
    return others;
  }

  async *#heldTexts(): AsyncGenerator<Buffer> {
    const { journal } = this.#context;
    for (const segment of journal.held.of(this.table.name).segments) yield await journal.textOf(segment);
  }

  /** Compares held rows with the facts. True if some windows have to be fetched again; these are then planned. */
  async reconcile(facts: StorageFacts | null): Promise<boolean> {
    const own = facts?.get(this.table.name);
    if (this.#lapsed !== undefined) return false;
    if (facts === null) return await this.#mendWindows();
    if (own === undefined || this.#countRows === undefined) return false;
    await this.#countAgain();
    if (this.#disagreeing.length > 0) {
      const windows = this.#disagreeing.splice(0);
      // what the gateway dropped while it was read cannot be requested again
      if (windows.some(({ from }) => own.first !== undefined && own.first > from)) await this.plan(facts);
      await this.#dropSegments(
        (segment) => !this.#isApart(segment) && windows.some((window) => liesIn(segment, window)),
      );
    } else if (Number(own.rows) === this.#comparedRows() && own.first === this.#plannedFirst) return false;
    await this.plan(facts);
    const plan = this.#plan;
    if (plan === undefined) return false;
    // dropped segments take their bucket's Parquet with them, even if nothing replaces them
    return plan.drop.length > 0 || plan.gaps.length > 0;
  }

  /** Counts windows again whose counts differed: facts may lag behind the rows. */
  async #countAgain(): Promise<void> {
    const still: Disagreement[] = [];
    for (const window of this.#disagreeing) {
      const counted = await this.#countRows!(window.from, window.to);
      if (counted !== window.rows) still.push({ ...window, counted });
    }
    this.#disagreeing = still;
  }

  /** True if the facts disagree with the rows here, which lagging facts may resolve later. */
  disagrees(facts: StorageFacts | null): boolean {
    return facts !== null && this.#isJudged && this.#dissent(facts, this.#comparedRows()) !== null;
  }

  /** True if the rows here are compared with facts at all. */
  get #isJudged(): boolean {
    return this.error === null && !this.absent && this.#lapsed === undefined;
  }

  /** True if counts contradict what came: counts that lag may agree later. */
  mayAgreeLater(facts: StorageFacts | null): boolean {
    return this.disagrees(facts) || this.#isAgainstCounts;
  }

  /** Takes back an error that lagging counts may have caused. True if there was one: then plan the table again. */
  forgetDissent(): boolean {
    if (!this.#isAgainstCounts) return false;
    this.error = null;
    this.#doubt = null;
    return true;
  }

  get #isAgainstCounts(): boolean {
    return this.#countRows !== undefined && (this.error ?? this.#doubt)?.code === "incomplete";
  }

  /**
   * Finds by bisection how far the gateway's count matches the rows received: in the first window whose count differs, if
   * that is after the table's first row and all proven rows. Undefined if they agree, or there is nothing to fall back to.
   * `others` counts instead, by facts that are known to differ.
   */
  async findAgreedUntil(facts: StorageFacts | null, others?: CountRows): Promise<Nanoseconds | undefined> {
    const { until, committed } = this.#context;
    const first = facts?.get(this.table.name)?.first;
    const countRows = others ?? this.#countRows;
    if (until === undefined || first === undefined || countRows === undefined) return undefined;
    const proven = Object.values(committed).map((table) => table.proven?.certificate?.until ?? null);
    const isBeyond = (time: Nanoseconds) =>
      time > first && proven.every((before) => before === null || time > BigInt(before));
    // what is less here than the evidence says is left for a later job, with everything after it
    const lacks = (await this.lacking()).map(({ seen }) => seen);
    const ahead = lacks.map(({ from }) => BigInt(from)).filter(isBeyond);
    if (others === undefined && ahead.length > 0 && ahead.length === lacks.length) {
      this.#agreedUntil = ahead.reduce((a, b) => (a < b ? a : b));
      return this.#agreedUntil;
    }
    const isToFind = others === undefined ? this.disagrees(facts) : this.#isJudged;
    if (!isToFind) return undefined;
    const [differing] = await changedWindows(
      this.#comparedWindows(),
      (window) => this.#disagreeing.some((other) => liesIn(window, other)),
      countRows,
    );
    if (differing === undefined) return undefined;
    const times = await this.#timesIn(differing);
    // the missing rows may be anywhere in it
    const agreed =
      times.length < differing.rows ? differing.from : await agreedUntil(differing, times, countRows);
    if (!isBeyond(agreed) || !(await this.#areAllLater(lacks, agreed))) return undefined;
    this.#agreedUntil = agreed;
    return agreed;
  }

  /**
   * Whether all that is less here than the evidence says can be later than this, by the number of rows that the gateway
   * counts from there on. If not, the counts that agree may come from another node, which lacks the same rows.
   */
  async #areAllLater(lacks: readonly Evidence[], agreed: Nanoseconds): Promise<boolean> {
    const { until } = this.#context;
    const here = this.#here.now((segment) => this.#isApart(segment));
    for (const seen of lacks) {
      const { from, to } = windowOf(seen);
      if (from >= agreed || (until !== undefined && to > until)) continue;
      if (seen.by === "brought" || this.#countRows === undefined) return false;
      const before = await here.within({ from, to: agreed }, false);
      const later = to > agreed ? await this.#countRows(agreed, to) : 0;
      if (before.rows + later < seen.rows) return false;
    }
    return true;
  }

  /** The ts_event of each row of a window, except rows set aside and lines that have none. */
  async #timesIn({ segments }: HeldWindow): Promise<Nanoseconds[]> {
    const times: Nanoseconds[] = [];
    for (const segment of segments) {
      const text = await this.#context.journal.textOf(segment);
      for (const line of linesOf(text)) {
        const time = timeOf(line.toString("utf8"));
        if (time !== null) times.push(BigInt(time));
      }
    }
    return times;
  }

  /** Drops what lies beyond a horizon that moved back, and plans what that cuts off. */
  async fallBack(facts: StorageFacts | null): Promise<void> {
    const { until } = this.#context;
    if (until === undefined || this.#lapsed !== undefined) return;
    this.#disagreeing = this.#disagreeing.filter(({ to }) => to <= until);
    await this.#dropSegments(({ to }) => BigInt(to) > until);
    await this.plan(facts);
  }

  async #dropSegments(isStale: (segment: Segment) => boolean): Promise<void> {
    const { journal } = this.#context;
    const stale = journal.held.of(this.table.name).segments.filter(isStale);
    await letGoSegments(this.table, this.#context, stale);
  }

  /**
   * Without counts, the passes may disagree about rows that changed since they were fetched, by an earlier job or between
   * two slices of this one: the windows are requested once more, and those that changed are planned. Throws `shrunk` if a
   * proven one lost rows.
   */
  async #mendWindows(): Promise<boolean> {
    if ((await this.#disagreementByRows()) === null || this.#compared) return false;
    const isOther = await this.#byFacts(null, async (_, isAgain) => {
      if (isAgain) await this.plan(null);
      return (await this.#compare(this.#formerFiles.size === 0)) || isAgain;
    });
    if (!isOther) return false;
    await this.plan(null);
    return true;
  }

  /**
   * How the two passes disagree, after asking the gateway whether it prints the same rows in more than one way, or now has
   * only those that are here.
   */
  async #disagreementByRows(): Promise<RunvaultError | null> {
    const found = await this.#disagreement();
    // the number of rows does not depend on how they are printed
    if (found?.code !== "unverified") return found;
    const { journal, run, work } = this.#context;
    const onRows = (rows: number, bytes: number) => this.#context.onScanned(this.table, rows, bytes);
    const input = {
      ...{ run, table: this.table, work: { ...work, countRows: undefined, onRows } },
      read: (segment: Segment) => journal.textOf(segment),
    };
    const looks = await lookAtPassBefore(input, this.#comparedWindows(), this.#context);
    if (looks === "others") return found;
    if (looks === "printed otherwise") {
      this.#sameScan = journal.held.of(this.table.name).fullScan?.sha256;
      return null;
    }
    // if rows were corrected between the two, a new pass brings those that are here
    const isThere = (await scanAll(this.#scan)) !== "absent";
    return isThere ? await this.#disagreement() : found;
  }

  /** Proves that there are no rows outside those here, and none cut off by a cap. */
  async proveFilled(facts: StorageFacts | null): Promise<void> {
    const { slices, until, run, work } = this.#context;
    const own = facts?.get(this.table.name);
    const { fullScan } = this.#context.journal.held.of(this.table.name);
    const extent = extentOf(own ?? fullScan);
    if (this.#lapsed !== undefined) return;
    // shown already, or doubted, or soon reported as contradicting the facts
    if (this.restsOn.length > 0 || this.#doubt !== null || this.disagrees(facts)) return;
    if (extent === undefined || !this.#agreedRows(facts)) return;
    const isByArrival = this.#route.numbers === "arrival";
    // the order of newer rows is yet to be shown
    const isStanding = own !== undefined && !isByArrival;
    this.restsOn = isStanding ? standingGrounds(this.#former, own, run, until) : [];
    if (this.restsOn.length > 0) return;
    const openEnds = own === undefined ? (fullScan?.openEnds ?? []) : [];
    const alone = this.#isAlone(extent) ? this.#alone : undefined;
    const common = {
      asks: asksOf(this.table, this.#context),
      run,
      until,
      extent,
      isCounted: own !== undefined,
      rung: alone?.rung ?? this.#scan.found.rung,
      alone,
      openEnds,
      seenExtent: this.#seen,
    };
    await this.#doubting(async () => {
      const prove = () => proveFilled({ ...common, mostBytes: work.mostBytes, seen: work.seen });
      if (isByArrival && own !== undefined) await this.#requireSameOrder();
      this.restsOn = [...(await slices.add(prove)), ...(isByArrival ? [grounds.arrivalOrder] : [])];
    });
  }

  /**
   * Plans again if rows are doubted and the gateway's now begin later: nothing shows the ends of what it dropped. True if
   * it did.
   */
  async planBegunLater(facts: StorageFacts | null): Promise<boolean> {
    const now = this.#doubt === null ? undefined : await this.#begunLater(facts);
    if (now === undefined) return false;
    this.#doubt = null;
    await this.plan(now);
    return true;
  }

  /** Streams unproven rows once more: counts say nothing about the order in which rows of one instant arrive. */
  async #requireSameOrder(): Promise<void> {
    const { journal, run, work, slices, sliceRows } = this.#context;
    const held = journal.held.of(this.table.name);
    const isProven = provenSegments(this.#former);
    const aside = new Set(held.quarantine.map(windowKey));
    // rows that were set aside are no longer in the text
    const windows = heldWindows(held).filter(
      (window) => !window.segments.every(isProven) && !aside.has(windowKey(window)),
    );
    const countRows = this.#countRows;
    const onRows = (rows: number, bytes: number) => this.#context.onScanned(this.table, rows, bytes);
    for (const part of contiguous(windows).flatMap((stretch) => ofAboutRows(stretch, sliceRows))) {
      const input = {
        ...{ run, table: this.table, windows: part },
        work: { ...work, countRows, onRows },
        read: (segment: Segment) => journal.textOf(segment),
        onEqual: async () => {},
      };
      const [differing] = await slices.add(() => compareHeld(input));
      if (differing === undefined) continue;
      throw new RunvaultError(
        "unverified",
        `asked again, the gateway sends the rows in ${windowText(differing)} in another order, or other rows`,
        {
          hint: "The profile numbers rows of one instant by their arrival (ties: arrival). Use ties: bytes, which does not depend on the order.",
        },
      );
    }
  }

  /** Whether the single answer that brought these rows covers the table as it is counted now. */
  #isAlone({ first, last }: Extent): boolean {
    if (this.#alone === undefined) return false;
    const { from, to } = this.#alone.of;
    return from === first && to === (this.#context.until ?? last + 1n);
  }

  /**
   * Proves that a table without rows has none, by what the tables with rows have shown. True if rows turned up; these are
   * then planned.
   */
  async proveEmpty(
    facts: StorageFacts | null,
    filled: ReadonlyMap<TableName, FilledExtent>,
    summary: () => Promise<Uint8Array | null>,
  ): Promise<boolean> {
    const { journal, slices, until, run, work } = this.#context;
    const own = facts?.get(this.table.name);
    if (this.#lapsed !== undefined || this.#agreedRows(facts) !== 0) return false;
    // this was said while no table of the run had rows
    const isPast = (ground: string) => filled.size > 0 && ground === grounds.countedNoneInRun;
    const standing = own === undefined ? [] : standingGrounds(this.#former, own, run, until);
    this.restsOn = standing.some(isPast) ? [] : standing;
    if (this.restsOn.length > 0) {
      await this.#doubting(() => this.#requireNoneSince());
      return false;
    }
    const former = own === undefined ? [] : formerGrounds(this.#former, own, until);
    const before = former.some(isPast) ? [] : former;
    const common = {
      asks: asksOf(this.table, this.#context),
      run,
      until,
      before,
      filled,
      summary,
      seen: work.seen,
      openEnds: own === undefined ? (journal.held.of(this.table.name).fullScan?.openEnds ?? []) : [],
      mostBytes: work.mostBytes,
    };
    let rowsOn: Rung | undefined;
    await this.#doubting(async () => {
      const proof = await slices.add(() => proveEmpty({ ...common, isCounted: own !== undefined }));
      if ("restsOn" in proof) this.restsOn = proof.restsOn;
      else if (own !== undefined) throw rowsOutside(proof.rowsOn);
      else rowsOn = proof.rowsOn;
    });
    if (rowsOn === undefined) return false;
    await passOverRows(rowsOn, false, this.#scan);
    await this.plan(facts);
    return true;
  }

  /** Throws `incomplete` if an empty table of an unfinished run now has a row that is not counted yet. */
  async #requireNoneSince(): Promise<void> {
    const { until, slices } = this.#context;
    const from = this.#former?.proven?.certificate?.until ?? null;
    if (until === undefined || from === null || BigInt(from) >= until) return;
    const window = { from: BigInt(from), to: until };
    try {
      await slices.add(() => requireNone(asksOf(this.table, this.#context), window));
    } catch (error) {
      // such a long window may be refused, which says nothing about rows
      if (!isRefusal(error)) throw error;
    }
  }

  /** The number of rows here, if counts or the full scan agree; undefined if they do not, or there are neither. */
  #agreedRows(facts: StorageFacts | null): number | undefined {
    const held = this.#context.journal.held.of(this.table.name);
    const rows = this.#comparedRows();
    const own = facts?.get(this.table.name);
    const wanted = own === undefined ? held.fullScan?.rows : Number(own.rows);
    return wanted === rows ? rows : undefined;
  }

  /** An error that casts doubt on the rows does not remove them: it is reported beside them. */
  async #doubting(prove: () => Promise<void>): Promise<void> {
    try {
      await prove();
    } catch (thrown) {
      if (!(thrown instanceof RunvaultError) || thrown.exit !== exit.incomplete) throw thrown;
      this.#doubt = thrown;
    }
  }

  /** Notes that a finished run's summary counts more rows than are here, if nothing explains it. */
  async holdAgainstSummary(summary: () => Promise<Uint8Array | null>): Promise<void> {
    const { name } = this.table;
    if ((name !== "fills" && name !== "orders") || !this.#isJudged || !this.#context.run.final) return;
    const { segments, quarantine } = this.#context.journal.held.of(name);
    const here = rowsIn(segments) + quarantinedRows(quarantine);
    const counted = countedBySummary(await summary(), name);
    if (counted <= BigInt(here) || this.#gatewayFrom !== undefined) return;
    this.#summaryNote = `the run's summary counts ${counted} ${name}, but only ${countText(here, "row")} came`;
  }

  /** The table as the manifest will have it. */
  async result(facts: StorageFacts | null, checkedAt: string): Promise<TableManifest> {
    const { journal, run, exactTypes } = this.#context;
    const held = journal.held.of(this.table.name);
    const isCompared = this.#compared || !this.#isToCompare || this.#former === undefined;
    const common = {
      ...(held.through === undefined ? {} : { through: held.through }),
      exactTypes: { ...exactTypes(this.table.name) },
      // rows that were not compared to the end still belong to the earlier version
      storageVersion: isCompared ? this.#context.versionNow() : latestView(this.#former!).storageVersion,
    };
    const own = facts?.get(this.table.name);
    if (this.absent && own !== undefined && own.rows > 0n) {
      this.absent = false;
      this.error = new RunvaultError(
        "incomplete",
        this.#isSaidNone
          ? `the profile says that the gateway has no such history, but its storage facts count ${countText(own.rows, "row")} of it`
          : `the gateway said that it has no such table, but now counts ${countText(own.rows, "row")} of it`,
        { hint: this.#isSaidNone ? "Describe the table in the profile." : "Run the same command again." },
      );
    }
    const rowsSeen = this.#record.items.reduce((most, { rows }) => Math.max(most, rows), 0);
    if (this.absent && rowsSeen > 0) {
      this.absent = false;
      this.error ??= new RunvaultError(
        "unverified",
        `the gateway says that it has no such table, but it reported or sent ${countText(rowsSeen, "row")} of it`,
        { hint: "Run the same command again; if it happens again, ask the gateway's operator." },
      );
    }
    const grain = held.grain ?? this.#former?.grain ?? "all";
    const former = this.#former?.proven ?? null;
    const settled = (
      outcome: AttemptOutcome,
      proves: Proven | null,
      holding: Holding | null,
    ): TableManifest => {
      const isOk = outcome === "ok";
      const mark: AttemptMark = isOk
        ? { outcome, proves: markOf(proves!) as Exclude<ProvenMark, { state: "none" }> }
        : { outcome, exit: this.error?.exit ?? exit.incomplete };
      const standing = provenStanding(markOf(former), mark, run.final ? "final" : "growing");
      if (isOk && standing.exit !== exit.done) {
        this.error = takenBack(former!);
        return settled("UNVERIFIED", null, this.#former?.attempt.holding ?? null);
      }
      const proven = standing.replaces ? proves : former;
      const came = isOk ? undefined : this.#came(holding);
      const attempt: Attempt = {
        outcome,
        at: checkedAt,
        behindSince: isOk ? null : (this.#former?.attempt.behindSince ?? checkedAt),
        error: this.error === null ? null : failureOf(this.error, checkedAt),
        notes: [...this.#notes(), ...(standing.note === null ? [] : [standing.note])],
        ...this.#toRemember(isOk, holding),
        // an attempt whose proof reaches less far takes no rows away
        holding: isOk && !standing.replaces ? (this.#former?.attempt.holding ?? null) : holding,
        ...(came === undefined ? {} : { came }),
      };
      return { state: tableState({ proven, attempt }), grain, proven, attempt };
    };
    if (this.error === null && this.#lapsed !== undefined) {
      // so that the next job need not ask again
      const kept = { ...former!, parquet: this.#wholeParquet(), storageVersion: common.storageVersion };
      return settled("ok", kept, await this.#beside(kept));
    }
    if (this.absent) return settled("ok", { state: "ABSENT", ...common, ...noFiles }, null);
    const brought = { ...common, ...(await this.#holding(facts, checkedAt)) };
    this.#unmet = await this.#findUnmet();
    const outcome = this.#outcome(brought.certificate);
    if (outcome !== "ok") return settled(outcome, null, await this.#unproven(brought));
    const beside = await this.#beside(brought);
    return settled("ok", { state: run.final ? "COMPLETE" : "OPEN", ...brought }, beside);
  }

  /** The rows that failed attempts brought, if more came than are kept. */
  #came(kept: Holding | null): Attempt["came"] {
    const before = this.#former?.attempt.came;
    // rows of another run do not count for this one
    const isOfRun = this.error === null || isKeptAfter(this.error);
    const all = [...(isOfRun ? [this.#scan.found.came] : []), ...(before === undefined ? [] : [before])];
    const { rows = 0, first } = (kept ?? this.#former?.proven)?.certificate ?? {};
    const firsts = all.flatMap((one) => (one.first === null ? [] : [BigInt(one.first)]));
    const isEarlier = firsts.some((ts) => first == null || ts < BigInt(first.ts));
    const most = Math.max(0, ...all.map((one) => one.rows));
    if (most <= rows && !isEarlier) return undefined;
    const earliest = firsts.length === 0 ? null : firsts.reduce((a, b) => (a < b ? a : b)).toString();
    return { rows: most, first: earliest };
  }

  /**
   * What is kept of a failed attempt: no fewer rows than were here before. Segments that no later job may take as complete
   * are marked as doubted. Null if only proven rows remain, and what the attempt brought is not worth keeping.
   */
  async #unproven(own: CertifiedHolding): Promise<Holding | null> {
    const { error } = this;
    // all rows came and were judged: that judgement says whether a later job has to fetch them again
    const isWhole = own.certificate.ended === "clean";
    const isTrusted = error === null || worthKeeping(error) || isWhole;
    const isFormer = ({ file, partOf = file }: Segment) =>
      this.#formerFiles.has(file) || this.#formerFiles.has(partOf);
    const isKept = isTrusted || isKeptAfter(error);
    // proven rows stand in for these
    const isRestless = (segment: Segment) =>
      this.#former?.proven != null && this.#restless.some((window) => overlaps(segment, window));
    const brought = own.segments.filter((segment) => (isKept && !isRestless(segment)) || isFormer(segment));
    const all = await this.#withFormer(brought);
    const { proven, attempt } = this.#former ?? {};
    if (
      (!isTrusted || this.#restless.length > 0) &&
      all.every(isFormer) &&
      (proven != null || attempt?.holding != null)
    )
      return attempt?.holding ?? null;
    const files = new Set(brought.map(({ file }) => file));
    const isDoubted = (segment: Segment) =>
      isTrusted
        ? !files.has(segment.file) && !this.#isApart(segment) && !isRestless(segment)
        : !this.#isProven(segment);
    const segments = all.map((segment) =>
      isDoubted(segment) ? { ...segment, doubted: true as const } : segment,
    );
    const isSame = segments.every(({ file }) => files.has(file)) && segments.length === own.segments.length;
    return isSame && isTrusted ? own : await this.#rows.heldAs(segments, own);
  }

  /**
   * The rows that were never proven and that the gateway no longer has, to be kept beside those that are proven now; null
   * if there are none. If such rows share a window with proven ones, all rows of that bucket are kept.
   */
  async #beside(own: Holding): Promise<Holding | null> {
    const all = await this.#withFormer(own.segments);
    const files = new Set(own.segments.map(({ file }) => file));
    const unproven = Map.groupBy(
      all.filter(({ file, rows }) => rows > 0 && !files.has(file)),
      ({ bucket }) => bucket,
    );
    if (unproven.size === 0) return null;
    const proven = Map.groupBy(own.segments, ({ bucket }) => bucket);
    const segments = [...unproven].flatMap(([bucket, segments]) =>
      lieApart(segments, proven.get(bucket) ?? [])
        ? segments
        : all.filter((segment) => segment.bucket === bucket),
    );
    this.#rowsBeside = rowsIn(all) - rowsIn(own.segments);
    const { certificate, ...rest } = await this.#rows.heldAs(segments, own);
    const nothing = { gatewayRows: null, gatewayFrom: null, quarantineAccepted: false, restsOn: [] };
    return { ...rest, certificate: { ...certificate!, proof: "none", ended: "cut", ...nothing } };
  }

  /**
   * The evidence for the next attempt; of many windows, the widest. After a successful attempt, that is what lies after its
   * horizon, otherwise what is not here. Held rows are left out: the next attempt records them if it drops them.
   */
  #toRemember(isOk: boolean, holding: Holding | null): Pick<Attempt, "seen"> {
    const { until } = this.#context;
    const isHeld = holding !== null && !holding.segments.some(({ doubted }) => doubted);
    const wide = (seen: Evidence) => BigInt(seen.to) - BigInt(seen.from);
    const items = !isOk && isHeld ? this.#unmet : this.#record.items;
    const seen = items
      .filter(({ to }) => !isOk || (until !== undefined && BigInt(to) > until))
      .map((seen) => ({ ...seen, isOlder: true as const }))
      .sort((a, b) => Number(wide(b) - wide(a)))
      .slice(0, mostRemembered);
    return seen.length === 0 ? {} : { seen };
  }

  /** Evidence not met by the rows here, or left open by the horizon; all of it if the rows here cannot be read. */
  async #findUnmet(): Promise<readonly Evidence[]> {
    const { until } = this.#context;
    const { items } = this.#record;
    try {
      const lacks = await this.#lackingNow();
      const isOpen = ({ to }: Evidence) => until !== undefined && BigInt(to) > until;
      return [...new Set([...lacks.map(({ seen }) => seen), ...items.filter(isOpen)])];
    } catch (thrown) {
      if (RunvaultError.from(thrown).code !== "archive_damaged") throw thrown;
      return items;
    }
  }

  /** The held rows of the table now, with their certificate. */
  async #holding(facts: StorageFacts | null, checkedAt: string) {
    const { journal, until, versionMoved, requireDistinctSeq } = this.#context;
    const own = facts?.get(this.table.name);
    const held = journal.held.of(this.table.name);
    const ended: Certificate["ended"] = this.error === null ? "clean" : "cut";
    await this.#convertOwn();
    const segments = held.segments.filter((segment) => !this.#isApart(segment));
    const parquet = [...new Set(segments.map(({ bucket }) => bucket))]
      .flatMap((bucket) => journal.held.converted(this.table.name, bucket, this.#ownIn(bucket)) ?? [])
      .sort(inOrder);
    const windows = new Set(segments.map(windowKey));
    const quarantine = held.quarantine.filter((file) => windows.has(windowKey(file)));
    const quarantined = quarantinedRows(quarantine);
    const rows = rowsIn(segments);
    const files = parquet.map(({ file }) => file);
    if (versionMoved()) {
      await this.attempt(async () => requireDistinctSeq(this.table, await this.#located(files)));
    }
    await this.attempt(() => this.#requireProvenRows(files, quarantined));
    const found = this.error === null ? await this.#proof(facts, this.#comparedRows()) : "none";
    const converted = parquet.reduce((sum, { file }) => sum + file.rows, 0);
    if (this.error === null && converted !== rows) {
      throw new RunvaultError(
        "internal",
        `${converted} of ${rows} rows of ${this.table.name} are in Parquet`,
      );
    }
    const proof = this.#withRowsGone(await this.#hashProof(found, files, quarantined));
    const isWanted = this.#context.fingerprint || proof === "hashed";
    const hash = isWanted ? (this.#wholeHash ?? (await this.#rowHash(files))) : null;
    const certificate: Certificate = {
      proof,
      ended,
      rows,
      quarantined,
      quarantineAccepted: quarantined > 0 && (await this.#isAccepted(quarantine)),
      gatewayRows: own === undefined ? null : own.rows.toString(),
      gatewayFrom: this.#gatewayFrom?.toString() ?? null,
      first: parquet[0]?.file.first ?? null,
      last: parquet.at(-1)?.file.last ?? null,
      until: until?.toString() ?? null,
      schemaFingerprint: own?.schemaFingerprint ?? null,
      rowHash: hash === null ? null : { rows: hash.rows.toString(), sum: hash.hash.toString() },
      restsOn: await this.#grounds(),
      checkedAt,
    };
    return {
      certificate,
      segments: segments.map((segment) =>
        this.#isDoubted(segment) ? { ...segment, doubted: true as const } : segment,
      ),
      parquet: parquet.map(({ file }) => file),
      quarantine,
      drift: driftOf(parquet.map(({ drift }) => drift)),
    };
  }

  /**
   * Throws `shrunk` if proven rows are no longer here: counts do not show it if others came in their place. Looks only at
   * buckets of which a segment was fetched again; a corrected row keeps its seq.
   */
  async #requireProvenRows(files: readonly ParquetFile[], setAside: number): Promise<void> {
    const proven = this.#former?.proven ?? null;
    if (proven === null || this.#context.acceptShrink) return;
    const { segments } = this.#context.journal.held.of(this.table.name);
    const rowsOf = new Map<string, number>();
    for (const { file, partOf = file, rows } of segments)
      for (const name of new Set([file, partOf])) rowsOf.set(name, (rowsOf.get(name) ?? 0) + rows);
    const dropped = proven.segments.filter(({ file, rows }) => (rowsOf.get(file) ?? 0) < rows);
    let gone = 0n;
    for (const bucket of new Set(dropped.map(({ bucket }) => bucket))) {
      const whole = await this.#rows.whole(proven.parquet.filter((file) => file.bucket === bucket));
      const before = await this.#located(whole);
      const now = files.filter((file) => file.bucket === bucket);
      const missing = await this.#context.countGone(this.table, before, await this.#located(now));
      // a corrected row may have moved to another bucket
      gone += missing && (await this.#context.countGone(this.table, before, await this.#located(files)));
    }
    // rows newly set aside are reported as such
    const aside = setAside - (proven.certificate?.quarantined ?? 0);
    if (gone <= BigInt(Math.max(0, aside))) return;
    throw new RunvaultError(
      "shrunk",
      `the gateway no longer has ${countText(gone, "proven row")}, and sent others instead`,
      { hint: "If the rows were removed from the gateway on purpose, run again with --accept-shrink." },
    );
  }

  /**
   * True if no later job may take a segment as complete because its counts happen to match. What was proven before, and
   * what only the archive still has, is not doubted.
   */
  #isDoubted(segment: Segment): boolean {
    if (this.#disagreeing.some((window) => liesIn(segment, window))) return true;
    const isGone = this.#gatewayFrom !== undefined && BigInt(segment.from) < this.#gatewayFrom;
    return this.#isHashOther && !isGone && !provenSegments(this.#former)(segment);
  }

  /** Throws `shrunk` if an OPEN table is said to have no rows, but requests for its proven rows bring some. */
  async #requireNoneProven(): Promise<void> {
    const { state, certificate } = this.#former!.proven!;
    const extent = extentOf({ first: certificate?.first?.ts, last: certificate?.last?.ts });
    if (state !== "OPEN" || extent === undefined) return;
    if (!(await this.#isNoneIn({ from: extent.first, to: extent.last + 1n })))
      throw vanished("no rows of the table");
  }

  /** The proof of all rows together: rows that the gateway no longer has keep the proof they had. */
  #withRowsGone(proof: Proof): Proof {
    const before = this.#former?.proven?.certificate?.proof;
    return this.#gatewayFrom === undefined || before === undefined ? proof : weakerProof(proof, before);
  }

  /** For a table that the gateway no longer has: rebuilds lost Parquet, and throws if segments are lost. */
  async #keepWhole(): Promise<void> {
    const { segments, parquet } = this.#former!.proven!;
    const whole = await this.#rows.whole(segments);
    const lost = segments.filter((segment) => !whole.includes(segment));
    if (lost.length > 0) {
      throw new RunvaultError(
        "unverified",
        `the archive lost ${countText(lost.length, "proven segment")}, and the gateway no longer has rows of the table`,
        { hint: "Restore the files from a backup; `runvault verify` names them." },
      );
    }
    for (const { bucket } of parquet) {
      await this.#convert(bucket, () => segments.filter((segment) => segment.bucket === bucket));
    }
  }

  /** The Parquet files of such a table. */
  #wholeParquet(): ParquetFile[] {
    const { segments, parquet } = this.#former!.proven!;
    const { held } = this.#context.journal;
    return parquet.map((file) => {
      const of = segments.filter(({ bucket }) => bucket === file.bucket);
      return held.converted(this.table.name, file.bucket, of)?.file ?? file;
    });
  }

  /**
   * Converts what has no Parquet yet, because a segment was split at the gateway's first row, or the table failed. For a
   * failed table, what cannot be converted is left out.
   */
  async #convertOwn(): Promise<void> {
    const { segments } = this.#context.journal.held.of(this.table.name);
    const convert = async () => {
      for (const bucket of new Set(segments.map(({ bucket }) => bucket))) await this.#convert(bucket);
    };
    if (this.error === null) await this.attempt(convert);
    else await tolerating(convert);
  }

  /**
   * What the proof rests on besides its kind: the ends, or what shows that there are no rows; and how rows archived before
   * were last checked, which stands until that is done again.
   */
  async #grounds(): Promise<string[]> {
    const isOfRows = (ground: string) => Object.values<string>(heldGrounds).includes(ground);
    const said = this.#former?.proven?.certificate?.restsOn ?? [];
    const gone = await this.#unseenWindow();
    this.#unseen = gone;
    const unknown = [...said.filter(unseen.isSaid), ...(gone === undefined ? [] : [unseen.between(gone)])];
    const shown = this.restsOn.filter((ground) => !isOfRows(ground) && !unseen.isSaid(ground));
    const held = this.#heldGround();
    const before = shown.length === 0 ? [] : said.filter(isOfRows);
    const { pages } = this.#route;
    // a late row between two pages may double one row and lose another while the counts agree
    const joined =
      pages === "offset" ? [grounds.pagesByOffset] : pages === "number" ? [grounds.pagesByNumber] : [];
    const paged = shown.length === 0 ? [] : joined;
    return [...new Set([...shown, ...paged, ...(held === undefined ? before : [held]), ...unknown])];
  }

  /**
   * Where rows may have come and gone at the gateway: from the horizon up to which the table was proven, or from the
   * earliest row that came without being proven, to where its rows begin. What was reported before is not reported again.
   */
  async #unseenWindow(): Promise<Window | undefined> {
    const to = this.#gatewayFrom;
    if (to === undefined || this.error !== null || this.#context.acceptShrink) return this.#sinceHorizon(to);
    const { proven, attempt } = this.#former ?? {};
    const isTold = proven?.certificate?.restsOn.some(unseen.isSaid) === true;
    const told = isTold ? (proven.certificate!.gatewayFrom ?? null) : null;
    const isNew = (ts: Nanoseconds) => ts < to && (told === null || ts >= BigInt(told));
    const since = this.#sinceHorizon(to);
    const starts = [since, this.#retained].flatMap((window) => (window === undefined ? [] : [window.from]));
    if (attempt?.came?.first != null) starts.push(BigInt(attempt.came.first));
    // proven segments in whose place the gateway had other rows since
    const former = latestView(this.#former)?.segments.filter(({ doubted }) => doubted === undefined) ?? [];
    const files = new Set(former.flatMap(({ file, partOf = file }) => [file, partOf]));
    const other = proven?.segments.filter(({ file, rows }) => rows > 0 && !files.has(file)) ?? [];
    starts.push(...other.map(({ from }) => BigInt(from)));
    const { journal } = this.#context;
    const own = journal.held.of(this.table.name).segments.filter((segment) => !this.#isApart(segment));
    const isUnproven = (segment: Segment) => segment.rows > 0 && !own.includes(segment);
    const unproven = (await this.#withFormer(own))
      .filter(isUnproven)
      .find(({ to }) => isNew(BigInt(to) - 1n));
    const first = unproven && (await firstTime(await journal.textOf(unproven)));
    if (first != null) starts.push(BigInt(first));
    const news = starts.filter(isNew);
    return news.length === 0 ? undefined : { from: news.reduce((a, b) => (a < b ? a : b)), to };
  }

  #sinceHorizon(to: Nanoseconds | undefined): Window | undefined {
    const until = this.#former?.proven?.certificate?.until;
    return until == null || to === undefined || to <= BigInt(until) ? undefined : { from: BigInt(until), to };
  }

  /** How this job checked rows archived before; undefined if it did not. */
  #heldGround(): string | undefined {
    if (this.#isSameByHash) return heldGrounds.hash;
    if (this.#compared && this.#formerFiles.size > 0) return heldGrounds.streamed;
    const isTrusted = this.#context.run.final && this.#grewHere && this.#countRows !== undefined;
    return isTrusted ? heldGrounds.counts : undefined;
  }

  /** True if the operator accepts these rows as set aside: now, or when the same rows were proven that way. */
  async #isAccepted(quarantine: readonly QuarantineFile[]): Promise<boolean> {
    if (this.#context.acceptQuarantine) return true;
    const { proven } = this.#former ?? {};
    if (!proven?.certificate?.quarantineAccepted) return false;
    const files = new Set(proven.quarantine.map(({ file }) => file));
    const others = quarantine.filter(({ file }) => !files.has(file));
    if (others.length === 0) return true;
    // a window that was fetched again has the same rows in another file
    const { journal } = this.#context;
    const accepted = new Set(await journal.rowsAside(proven.quarantine));
    const rows = await journal.rowsAside(others);
    return rows.length === quarantinedRows(others) && rows.every((row) => accepted.has(row));
  }

  /** Rows that the gateway should still have: those held, except what it no longer keeps. */
  #comparedRows(): number {
    return sumRows(this.#comparedWindows());
  }

  #comparedWindows(): HeldWindow[] {
    const from = this.#gatewayFrom;
    const windows = heldWindows(this.#context.journal.held.of(this.table.name));
    return windows.filter(({ to }) => from === undefined || to > from);
  }

  /** Notes about the table that are not errors. */
  #notes(): string[] {
    if (this.#lapsed !== undefined) {
      return [
        `the gateway no longer has the table's ${countText(this.#lapsed.rows, "row")}; what was proven stays`,
        ...this.#noteBeside(),
      ];
    }
    if (this.error !== null) return [];
    if (this.absent) return this.#isSaidNone ? ["the profile says that the gateway has no such history"] : [];
    const notes: string[] = [];
    if (this.#gatewayFrom !== undefined) {
      const gone = `the gateway no longer has rows before ${formatTime(this.#gatewayFrom)}`;
      notes.push(this.#former?.proven ? `${gone}; what was proven stays` : gone);
    }
    if (this.#outlived !== undefined) {
      const { seen, here } = this.#outlived;
      notes.push(
        `an earlier attempt saw ${countText(seen.rows, "row")} in ${windowText(windowOf(seen))}; ${looksAtOlder} looks since agree on ${here.rows}`,
      );
    }
    if (this.#outdated !== undefined) {
      const { seen, here } = this.#outdated;
      notes.push(
        `${countText(seen.rows, "row")} in ${windowText(windowOf(seen))} were seen under another version of the run; its new version has ${here.rows}`,
      );
    }
    notes.push(...this.#noteBeside());
    if (this.#unseen !== undefined) notes.push(unseen.between(this.#unseen));
    if (this.#summaryNote !== undefined) notes.push(this.#summaryNote);
    if (this.#agreedUntil !== undefined) {
      const from = formatTime(this.#agreedUntil);
      const until = formatTime(this.#context.until!);
      notes.push(`the gateway's counts and rows do not agree yet from ${from} on; proven up to ${until}`);
    }
    return notes;
  }

  #noteBeside(): string[] {
    if (this.#rowsBeside === 0) return [];
    const rows = countText(this.#rowsBeside, "row");
    return [`${rows} that came before were never proven: --allow-incomplete shows them`];
  }

  /**
   * Facts that leave a table out prove nothing unless the table's own route says the same. Without facts, where a full scan
   * has asked it once, it has to say so on new connections too: a node that starts up refuses what it has not loaded.
   */
  async #requireUnavailable(facts: StorageFacts | null): Promise<void> {
    const { work, until } = this.#context;
    for (let look = 0; look < (facts === null ? looksAtAbsent : 1); look++) {
      if (facts === null) work.source.reconnect?.();
      if (await isRefusedByRoute(asksOf(this.table, this.#context), until)) continue;
      throw new RunvaultError(
        "unverified",
        facts === null
          ? "the table's route said that there is no such table, and did not when asked again"
          : "the gateway's storage facts leave the table out, but its own route does not say that there is none",
        {
          hint: "Tell the gateway's operator: the route of a table that a run does not have must answer 409 history_unavailable.",
        },
      );
    }
  }

  /** Splits a segment where the gateway's rows now begin. */
  async #split({ segment, at }: SplitStep): Promise<void> {
    await this.#context.journal.splitSegment(this.table.name, segment, await this.#rows.partsOf(segment, at));
  }

  /** Brings back what was proven before the gateway's first row. Throws `unverified` if it is lost. */
  async #restore({ segments, at }: RestoreStep): Promise<void> {
    const { journal } = this.#context;
    const { name } = this.table;
    if ((await this.#rows.whole(segments)).length < segments.length) {
      throw new RunvaultError(
        "unverified",
        `the gateway dropped rows before ${at}, and some that were proven are no longer complete here`,
        { hint: "What was proven stays. If files are missing or damaged, restore them from a backup." },
      );
    }
    const files = new Set(segments.map(({ file }) => file));
    await this.#dropSegments(({ partOf }) => partOf !== undefined && files.has(partOf));
    for (const segment of segments) await journal.addSegments(name, await this.#rows.aheadOf(segment, at));
  }

  /** The row hash of the table's Parquet files; null for a failed table, whose buckets may lack theirs. */
  async #rowHash(files: readonly ParquetFile[], bounds: TimeBounds = {}): Promise<RowHash | null> {
    if (this.error !== null) return null;
    return await this.#context.hashOf(this.table, await this.#located(files), bounds);
  }

  #located(files: readonly ParquetFile[]): Promise<string[]> {
    return Promise.all(files.map((file) => this.#context.journal.locateWhole(file)));
  }

  /**
   * True if the gateway's row checksum from the first of these windows to the last is that of the rows here: then they need
   * not be streamed. False if one request cannot get it, or it cannot be compared.
   */
  async #hasHashOf(windows: readonly HeldWindow[]): Promise<boolean> {
    const { journal, run, work, hashOf } = this.#context;
    const { name } = this.table;
    const bounds = { from: windows[0]!.from, to: windows.at(-1)!.to };
    const held = journal.held.of(name);
    if (this.#countRows === undefined || held.quarantine.length > 0) return false;
    const buckets = new Set(windows.flatMap(({ segments }) => segments.map(({ bucket }) => bucket)));
    const made = [...buckets].map((bucket) => journal.held.converted(name, bucket, this.#ownIn(bucket)));
    const files = made.flatMap((one) => (one === undefined ? [] : [one.file]));
    if (files.length < made.length) return false;
    try {
      const { hash } = await comparableHash(this.#noting, run, this.table, bounds, work.signal);
      if (hash === null) return false;
      const own = await hashOf(this.table, await this.#located(files), bounds);
      return own.rows === hash.rows && own.hash === hash.hash;
    } catch (thrown) {
      work.signal.throwIfAborted();
      // the checksum is requested only to save streaming, so its failure decides nothing
      const error = RunvaultError.from(thrown);
      if (error.scope === "table" || error.code === "archive_damaged") return false;
      throw error;
    }
  }

  /** The source, with what it counts recorded as evidence of every table. */
  get #noting(): Pick<HistorySource, "facts" | "traits"> {
    const { work, evidence } = this.#context;
    const { source } = work;
    return {
      ...(source.traits && { traits: source.traits.bind(source) }),
      facts: async (run, bounds, ...asked) => {
        const facts = await source.facts(run, bounds, ...asked);
        // the ends of an empty table may be the request's bounds
        const filled = [...(facts ?? [])].filter(([, { rows }]) => rows > 0n);
        evidence.told(new Map(filled), bounds);
        return facts;
      },
    };
  }

  /** If the proof `hashed` is required, checks the gateway's row checksum; returns the resulting proof, sets the error. */
  async #hashProof(proof: Proof, files: readonly ParquetFile[], quarantined: number): Promise<Proof> {
    const { require } = this.#context;
    if (require !== "hashed" || this.error !== null) return proof;
    const given =
      quarantined > 0
        ? {
            hash: null,
            why: `the gateway's row checksum covers rows that were set aside here (${quarantined})`,
          }
        : proof === "counted"
          ? await this.#gatewayHash()
          : { hash: null, why: "the gateway has no storage facts" };
    if (given === undefined) return proof;
    if (given.hash === null) {
      this.error = new RunvaultError("unverified", given.why, {
        hint: "The rows cannot be proven by their hash; --require counted or --require any accepts a weaker proof.",
      });
      return proof;
    }
    const hash = await this.#rowHash(files, { from: this.#gatewayFrom });
    if (this.#gatewayFrom === undefined) this.#wholeHash = hash;
    if (given.hash.rows === hash?.rows && given.hash.hash === hash.hash) return "hashed";
    this.#isHashOther = true;
    this.error = new RunvaultError(
      "unverified",
      `the row hash here is ${hash?.rows}:${hash?.hash}, but the gateway's is ${given.hash.rows}:${given.hash.hash}`,
      { hint: "Run the same command again; if it happens again, ask the gateway's operator which is right." },
    );
    return "none";
  }

  /** The gateway's row hash within the horizon; undefined if the request failed, which is then the error. */
  async #gatewayHash(): Promise<GatewayHash | undefined> {
    const { run, until, work } = this.#context;
    const bounds = { from: this.#gatewayFrom, to: until };
    let given: GatewayHash | undefined;
    await this.attempt(async () => {
      given = await gatewayHash(this.#noting, run, this.table, bounds, work.signal);
    });
    return given;
  }

  #outcome({ proof, quarantined, quarantineAccepted }: Certificate): AttemptOutcome {
    if (this.error?.code === "unverified" || this.error?.code === "shrunk") return "UNVERIFIED";
    if (this.error !== null) return "INCOMPLETE";
    if (!isProofEnough(proof, this.#context.require)) return "UNVERIFIED";
    return quarantined > 0 && !quarantineAccepted ? "QUARANTINED" : "ok";
  }

  /** The proof of the rows and of what was shown about them; sets the error if there is none. */
  async #proof(facts: StorageFacts | null, rows: number): Promise<Proof> {
    const proof = await this.#agreement(facts, rows);
    if (this.error === null && this.restsOn.length === 0) {
      // each way to a proof gives its grounds: without grounds, nothing is proven
      this.error = new RunvaultError("unverified", "nothing proves that there are no other rows", {
        hint: "Run the same command again.",
      });
    }
    return this.error === null ? proof : "none";
  }

  /** The proof that counts or two passes give; sets the error if they disagree. */
  async #agreement(facts: StorageFacts | null, rows: number): Promise<Proof> {
    const { until } = this.#context;
    if (this.#doubt !== null) {
      this.error = this.#doubt;
      return "none";
    }
    const own = facts?.get(this.table.name);
    if (facts === null || own === undefined) {
      this.error = (await this.#disagreement()) ?? (await this.#shortfall(facts));
      return this.error === null ? "exhausted" : "none";
    }
    this.error = this.#dissent(facts, rows) ?? (await this.#shortfall(facts));
    // a table without any rows has none within any bounds, whether facts keep to them or not
    if (this.error === null && until !== undefined && this.#countRows === undefined && rows > 0) {
      this.error = new RunvaultError(
        "unverified",
        "the gateway's storage facts ignore time bounds, so a growing run cannot be proven",
        { hint: "Archive the run again once it has ended." },
      );
    }
    return this.error === null ? "counted" : "none";
  }

  /** How the facts disagree with the rows here; null if they do not. */
  #dissent(facts: StorageFacts, rows: number): RunvaultError | null {
    const own = facts.get(this.table.name);
    if (own === undefined) return null;
    const hint =
      "Run the same command again; if it happens again, ask the gateway's operator which is right.";
    const differing =
      this.#disagreeing.find((window) => window.rows < window.counted) ?? this.#disagreeing[0];
    if (differing !== undefined) {
      const where = ` in ${windowText(differing)}`;
      return otherCount(differing.rows, differing.counted, where, hint);
    }
    if (rows === 0 && own.rows === 0n && own.first !== undefined) {
      const message = `the gateway's storage facts contradict themselves: they count no rows, but give ${own.first} as the first ts_event and ${own.last} as the last`;
      return new RunvaultError("unverified", message, { hint });
    }
    if (Number(own.rows) !== rows) return otherCount(rows, Number(own.rows), "", hint);
    for (const [end, here, there] of this.#ends(own)) {
      if (here === there) continue;
      const message = `the ${end} ts_event is ${here ?? "none"} in the rows that came, but ${there ?? "none"} in the gateway's storage facts`;
      return new RunvaultError("unverified", message, { hint });
    }
    // a gateway that marks neither the run nor any of its tables may not know the mark
    const { final, isMarkedFinal } = this.#context.run;
    const knowsMark = isMarkedFinal || [...facts.values()].some((table) => table.final);
    if (!final || own.final || !knowsMark) return null;
    return new RunvaultError(
      "unverified",
      "the run is final, but the gateway says that this table is still growing",
      {
        hint,
      },
    );
  }

  /** First and last ts_event, here and by the facts; nothing if rows are set aside, because their times are unknown. */
  #ends({ first, last }: TableFacts) {
    const { quarantine } = this.#context.journal.held.of(this.table.name);
    if (quarantine.length > 0) return [];
    const here = this.#endsHere();
    // nothing is known before all of it is converted
    if (here === undefined) return [];
    return [
      ["first", this.#gatewayFrom ?? here.first, first],
      ["last", here.last, last],
    ] as const;
  }

  /** First and last ts_event of all rows here; undefined before the buckets of both are converted. */
  #endsHere() {
    const { held } = this.#context.journal;
    const { segments } = held.of(this.table.name);
    const filled = segments.filter((segment) => segment.rows > 0 && !this.#isApart(segment));
    const made = (segment: Segment | undefined) =>
      segment && held.converted(this.table.name, segment.bucket, this.#ownIn(segment.bucket))?.file;
    const [begin, end] = [made(filled[0]), made(filled.at(-1))];
    if (filled.length > 0 && (begin === undefined || end === undefined)) return undefined;
    const timeOfKey = (key: { ts: string } | undefined) => (key === undefined ? undefined : BigInt(key.ts));
    const seqs = { firstSeq: begin?.first.seq, lastSeq: end?.last.seq };
    return { first: timeOfKey(begin?.first), last: timeOfKey(end?.last), ...seqs };
  }

  /** How the pass that stored rows and the full scan disagree; null if they brought the same rows. */
  async #disagreement(): Promise<RunvaultError | null> {
    const { fullScan, segments, quarantine } = this.#context.journal.held.of(this.table.name);
    const hint =
      "Run the same command again; if it happens again, ask the gateway's operator why rows differ from one request to the next.";
    const rows = this.#comparedRows();
    if (fullScan === null || fullScan.rows !== rows) {
      const message = `two passes over the table brought ${fullScan?.rows ?? 0} and ${rows} rows`;
      return new RunvaultError("incomplete", message, { hint });
    }
    if (quarantine.length > 0 || fullScan.sha256 === this.#sameScan) return null;
    const hash = createHash("sha256");
    for (const segment of segments) {
      if (this.#gatewayFrom !== undefined && BigInt(segment.to) <= this.#gatewayFrom) continue;
      const text = await this.#context.journal.textOf(segment);
      // segments stored by an earlier version still have odd zeros
      for await (const piece of piecesWithoutOddZeros(text, this.table)) hash.update(piece);
    }
    if (hash.digest("hex") === fullScan.sha256) return null;
    return new RunvaultError(
      "unverified",
      "two passes over the table brought the same number of rows, but not the same rows",
      { hint },
    );
  }

  async #convert(
    bucket: string,
    segments: () => readonly Segment[] = () => this.#ownIn(bucket),
  ): Promise<void> {
    const { journal, converter, run } = this.#context;
    if (journal.held.converted(this.table.name, bucket, segments()) !== undefined) return;
    await converter.convert(journal, run, this.table, bucket, segments);
  }

  /** These segments, and whatever else here has more rows: before the gateway's first, or anywhere after an error. */
  #withFormer(own: readonly Segment[]): Promise<Segment[]> {
    const { segments } = this.#context.journal.held.of(this.table.name);
    const apart = segments.filter((segment) => this.#isApart(segment));
    const isAnywhere = this.error !== null || this.#lapsed !== undefined;
    const from = this.#context.acceptShrink ? undefined : this.#gatewayFrom;
    return this.#rows.withFormer(own, apart, { from, isAnywhere });
  }

  /** True for rows that were never proven and that the gateway no longer has: there is nothing to compare them with. */
  #isApart(segment: Segment): boolean {
    if (this.#context.acceptShrink || this.#isProven(segment)) return false;
    const from = this.#gatewayFrom;
    return this.#lapsed !== undefined || (from !== undefined && BigInt(segment.to) <= from);
  }

  /** The segments of a bucket, without those rows. */
  #ownIn(bucket: string): Segment[] {
    const segments = this.#context.journal.held.segmentsOf(this.table.name, bucket);
    return segments.filter((segment) => !this.#isApart(segment));
  }
}

/** Requests on new connections that have to find nothing before rows count as dropped by the gateway. */
const questionsAhead = 6;

/** The most windows that a manifest remembers of a table. */
const mostRemembered = 1_000;

/** How often the gateway's rows may begin later while they are compared with the proven ones. */
export const mostBeginnings = 5;

/** How often the route of an absent table is asked again, each time on a new connection. */
const looksAtAbsent = 2;

/** Looks that must agree before evidence of an earlier job is dropped. */
const looksAtOlder = 8;

function mostSeen(one: Lack | undefined, other: Lack): Lack {
  return one !== undefined && one.seen.rows >= other.seen.rows ? one : other;
}

function overlaps(
  { from, to }: { readonly from: bigint | string; readonly to: bigint | string },
  window: Window,
): boolean {
  return BigInt(from) < window.to && window.from < BigInt(to);
}

/** Both extents, and what lies between. */
function around(one: Extent | undefined, other: Extent): Extent {
  if (one === undefined) return other;
  return {
    first: one.first < other.first ? one.first : other.first,
    last: one.last > other.last ? one.last : other.last,
  };
}

/** The error for another number of rows than the gateway counts. */
function otherCount(rows: number, counted: number, where: string, hint: string): RunvaultError {
  const others = countText(Math.abs(counted - rows), counted > rows ? "row" : "more row");
  return counted > rows
    ? new RunvaultError("incomplete", `${others} missing${where}: got ${rows} of ${counted}`, { hint })
    : new RunvaultError(
        "unverified",
        `${others} than the gateway counts${where}: got ${rows} instead of ${counted}`,
        { hint },
      );
}

/** The error for a proven table that the gateway no longer has although the run has not ended. */
function takenBack({ certificate }: Proven): RunvaultError {
  const { rows = 0, until = null } = certificate ?? {};
  const where = until === null ? "" : ` before ${formatTime(BigInt(until))}`;
  return new RunvaultError(
    "unverified",
    `the run is still growing, but the gateway says that it has no such table, although ${countText(rows, "row")}${where} of it had been proven`,
    {
      hint: "Ask the gateway's operator; if the table is still missing when the run has ended, what was proven stays, with a note.",
    },
  );
}

const noFiles = { certificate: null, segments: [], parquet: [], quarantine: [], drift: [] };

/** Whether the rows that came before an error are this run's, whatever else is wrong with them. */
function isKeptAfter(error: RunvaultError): boolean {
  return worthKeeping(error) || ["incomplete", "unverified", "shrunk"].includes(error.code);
}

/** Rows received before the gateway failed are good; those before it contradicted itself are not trusted. */
function worthKeeping(error: RunvaultError): boolean {
  return error.isGateways || error.code === "timestamp_capped" || error.wider !== undefined;
}

function failureOf(error: RunvaultError, at: string) {
  const again =
    error.retry === "again" ? "Run the same command again: it continues from what is already here." : null;
  const message = error.place.slice === undefined ? error.message : `${error.message} (${error.place.slice})`;
  return { code: error.code, message, hint: error.hint ?? again, at };
}
