import { setTimeout } from "node:timers/promises";
import type { Archive } from "../../archive/archive.ts";
import { lockRun } from "../../archive/lock.ts";
import { isAmiss } from "../../archive/manifest/acceptance.ts";
import {
  type Manifest,
  runState,
  type TableManifest,
  type TableState,
} from "../../archive/manifest/manifest.ts";
import { latestView } from "../../archive/manifest/table-view.ts";
import { concerning, lostFiles, namesOf } from "../../archive/read/lost-files.ts";
import { joinAddress, knownSource, rememberSource } from "../../archive/sources.ts";
import { makeRealFolder } from "../../archive/storage/real-folder.ts";
import { typesNow } from "../../archive/types-now.ts";
import { commitRun, tidyCommitted } from "../../archive/write/commit.ts";
import { RunJournal, type Step } from "../../archive/write/run-journal.ts";
import { mostSegmentBytes, sha256Of } from "../../archive/write/segment.ts";
import { JobDuckDB, usualMeans } from "../../duckdb/job-duckdb.ts";
import type { OpenDuckDB } from "../../duckdb/open-duckdb.ts";
import { rowHashWithin } from "../../duckdb/row-hash-within.ts";
import { RunvaultError, type WiderColumn } from "../../model/error.ts";
import { excessOf } from "../../model/outside-json.ts";
import { type Table, type TableName, tableNames } from "../../model/profile/table.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import { alsoTelling, type RetryPolicy } from "../../model/retry/retry-policy.ts";
import { documentKinds, type HistorySource, type RunRef, type StorageFacts } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { earlierOf, isoOf, type Nanoseconds } from "../../model/time.ts";
import { RunLists } from "../choose/run-lists.ts";
import { RunEvidence } from "../evidence/run-evidence.ts";
import { BucketConverter } from "../fetch/bucket-converter.ts";
import { diskBytes, refuseWhenFull, textBytes } from "../fetch/disk-need.ts";
import { isDue, isNowMarked } from "../plan/committed-table.ts";
import { routeOf } from "../plan/route.ts";
import type { TableAsks } from "../plan/table-asks.ts";
import { wantedTables } from "../plan/wanted-tables.ts";
import { differingTables, sameByOtherWay } from "../proof/other-facts.ts";
import type { RequiredProof } from "../proof/required-proof.ts";
import { SeenSource } from "../proof/seen-source.ts";
import { SteadyFacts } from "../proof/steady-facts.ts";
import { filledTables } from "../proof/zero-rows.ts";
import type { ConversionChange } from "../run-watcher.ts";
import { meansOfOne, type PlaceAmongJobs } from "../together/side-by-side.ts";
import { requireDistinctSeq } from "./distinct-seq.ts";
import { lookAgain } from "./look-again.ts";
import { mendGoneRun, requireWholeGone } from "./mend-gone.ts";
import { recordAttempt } from "./record-attempt.ts";
import { journalMaps, requireSameMap } from "./require-same-map.ts";
import { countGone } from "./rows-gone.ts";
import type { RunContext } from "./run-context.ts";
import { type RunDescription, settledVersion } from "./run-description.ts";
import { countRowsOf, isUpToDate, lookAhead, type RunHorizon } from "./run-horizon.ts";
import { requireSameRun } from "./run-identity.ts";
import { standingAcceptances } from "./standing-acceptances.ts";
import { type StepTimes, StepWatch } from "./step-times.ts";
import { mostBeginnings, TableArchiver } from "./table-archiver.ts";
import { unchangedRun } from "./unchanged-run.ts";

export interface ArchiveSettings {
  /**
   * Size at which a segment's text is cut. 8 MiB: small enough for several in memory, large enough for zstd and few files.
   */
  readonly segmentBytes: number;
  /** About how many rows a slice has. 500,000: a few seconds of transfer, the most that a failure without progress costs. */
  readonly sliceRows: number;
  /** Slices in flight. */
  readonly concurrency: number;
  /** How late rows of a run that has not ended may still arrive, in nanoseconds. */
  readonly settleNs: bigint;
  /** How long facts that disagree with a finished run's rows get to catch up; at most `settleNs`. */
  readonly factsPauseNs: bigint;
  /** A table with a weaker proof than this is UNVERIFIED. */
  readonly require: RequiredProof;
  readonly acceptShrink: boolean;
  /** Accepts tables as proven without the rows set aside. */
  readonly acceptQuarantine: boolean;
  /** Whether to stream the rows of a run that has become final once more, or to trust its counts. */
  readonly finalPass: "rows" | "counts";
  /** The operator says that the source has moved: the run was archived from it at another address. */
  readonly sourceMoved: boolean;
  /** If the source no longer knows the run, accepts its proven part as all there is. */
  readonly close: boolean;
  /** Streams rows again if they were last checked before this instant and nothing else would; null: never. */
  readonly recheckBefore: Nanoseconds | null;
  /** Puts the row hash of every table into its certificate. */
  readonly fingerprint: boolean;
  /** Memory DuckDB may take for the conversion, in MiB. With less than 300 it no longer uses two threads. */
  readonly memoryLimitMb: number;
  readonly threads: number;
}

export const defaultSettings: ArchiveSettings = {
  segmentBytes: 8 * 1024 * 1024,
  sliceRows: 500_000,
  concurrency: 3,
  settleNs: 60_000_000_000n,
  factsPauseNs: 10_000_000_000n,
  require: "any",
  acceptShrink: false,
  acceptQuarantine: false,
  finalPass: "rows",
  sourceMoved: false,
  close: false,
  recheckBefore: null,
  fingerprint: false,
  ...usualMeans,
};

export interface ArchiveJob {
  readonly source: HistorySource;
  /** The source's lists of runs, for a caller with several jobs. Default: requested for this job alone. */
  readonly lists?: RunLists;
  readonly archive: Archive;
  readonly run: RunRef;
  /** Default: all tables. */
  readonly tables?: readonly TableName[];
  readonly settings?: Partial<ArchiveSettings>;
  /** Leaves a run alone if its list and manifest show no change, without checking links and file sizes. */
  readonly isManifestEnough?: boolean;
  readonly clock: () => Nanoseconds;
  /** For answers that are cut off; the source has its own for those that never begin. */
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
  /**
   * Asks for an orderly end: fetching stops, fetched rows stay for the next job, conversions in progress are finished, and
   * a run whose rows are all here is still committed. Its reason is thrown if it ends the run.
   */
  readonly windDown?: AbortSignal | undefined;
  /** Version of this program, for the manifest. */
  readonly tool: string;
  /** The DuckDB that converts, for a caller with several jobs. Default: one for this job. */
  readonly duckdb?: JobDuckDB;
  /** What it shares with other jobs in progress. Default: nothing. */
  readonly among?: PlaceAmongJobs;
  /** Observations of the source, for a caller with several jobs. Default: what the archive remembers. */
  readonly seen?: SeenSource;
  /** How to wait; tests replace it. Default: the system's timer. */
  readonly wait?: (ns: bigint, signal: AbortSignal) => Promise<void>;
  readonly step?: Step;
  /** How many rows of a table will pass in all: those of a full scan, if one comes first, and those fetched. */
  readonly onPlan?: (table: Table, rows: number | undefined) => void;
  /** Rows as they pass. */
  readonly onRows?: (table: Table, rows: number, bytes: number) => void;
  readonly onConversion?: (change: ConversionChange) => void;
  readonly onNote?: (text: string) => void;
}

export interface RunOutcome {
  readonly manifest: Manifest;
  /** False if the archive already held everything. */
  readonly changed: boolean;
  readonly resumedSegments: number;
  /** How long each step took. */
  readonly steps: StepTimes;
  /** Columns too narrow for their values, with types that would fit. */
  readonly tooNarrow: readonly WiderColumn[];
  readonly rows: number;
  readonly bytes: number;
  /** Notes to report with the run that are not a table's errors. */
  readonly warnings: readonly string[];
}

/**
 * Archives one run: plan, fetch, convert, certify, commit. Running it again after any interruption finishes the work
 * without fetching stored rows again. A table that fails keeps what the archive holds of it; the others are committed.
 */
export async function archiveRun(job: ArchiveJob): Promise<RunOutcome> {
  const evidence = new RunEvidence();
  const facts = new SteadyFacts(job.source, evidence);
  try {
    return await archiveWith(facts, evidence, job);
  } catch (error) {
    job.signal.throwIfAborted();
    if (!facts.lost) throw error;
    return await archiveWith(facts, evidence, job);
  }
}

async function archiveWith(facts: SteadyFacts, evidence: RunEvidence, job: ArchiveJob): Promise<RunOutcome> {
  const settings = { ...defaultSettings, ...job.settings };
  const { source, archive, clock } = job;
  const step = job.step ?? (() => {});
  const wanted = wantedTables(source, job.tables);
  const startedAt = isoOf(clock());
  const startedMs = performance.now();
  const watch = new StepWatch();
  const stop = new AbortController();
  const signal = AbortSignal.any([job.signal, stop.signal]);
  const { windDown } = job;
  /** The signal for all work up to the last row. */
  const fetching = windDown === undefined ? signal : AbortSignal.any([signal, windDown]);
  let retries = 0;
  let rows = 0;
  let bytes = 0;
  /** The version at the last comparison with the source. */
  let version: string | undefined;

  const settledBefore = () => earlierOf(clock(), source.now?.()) - settings.settleNs;
  const lists = job.lists ?? new RunLists(source, { finishedStatus: [], settled: settledBefore });
  let run: RunDescription;
  try {
    run = await lists.describe(job.run, fetching);
  } catch (thrown) {
    return await keepGoneRun(job, wanted, startedAt, RunvaultError.from(thrown));
  }
  const unchanged = job.isManifestEnough
    ? await unchangedRun(archive, run, source.label, wanted, settings)
    : null;
  if (unchanged !== null) {
    requireSameMap(source, unchanged, wanted);
    return outcomeOf(unchanged, unchanged, []);
  }
  await using _lock = await lockRun(archive.layout, run, signal);
  await archive.refresh();
  const exactTypes = typesNow(archive);
  const committed = await archive.manifest(run);
  if (committed !== null) requireSameMap(source, committed, wanted);
  facts.expectAsBefore(committed, run);
  version = run.storageVersion;
  evidence.isOf(settledVersion(run));
  const { warnings } = facts;
  const identity = {
    ...{ source, archive, run, isMoved: settings.sourceMoved, retry: job.retry },
    signal: fetching,
  };
  /** Whether some of its rows differ from those archived. */
  let isChanged = false;
  /** Null if the run is the archived one; if not, that is recorded, nothing else is done, and this is the outcome. */
  const isOther = async (isToFetch: boolean): Promise<RunOutcome | null> => {
    if (committed === null) return null;
    try {
      isChanged = (await requireSameRun({ ...identity, committed, isToFetch })) || isChanged;
      return null;
    } catch (thrown) {
      const error = RunvaultError.from(thrown);
      if (error.code !== "history_identity_conflict") throw error;
      const names = wanted.map(({ name }) => name);
      const { tool } = job;
      const attempt = { archive, committed, tables: names, error, at: startedAt, exactTypes, tool, step };
      const manifest = await recordAttempt({ ...attempt, situation: "reset", isClosed: false });
      return outcomeOf(manifest, committed, [error.message]);
    }
  };
  const other = await isOther(false);
  if (other !== null) return other;
  job.seen?.learn(await knownSource(archive, source.label));
  const lost = await lostFiles(archive, committed);
  const toMend = concerning(lost, wanted);
  const onCame: TableAsks["onCame"] = (asks, came) => evidence.sent(asks.table.name, came);
  const asks = { source, run, retry: job.retry, signal: fetching, onCame };
  const { open, ended } = await standingAcceptances(facts, committed, run, wanted, lost, fetching);
  for (const text of ended) if (!warnings.includes(text)) warnings.push(text);
  if (
    committed !== null &&
    toMend.length === 0 &&
    !isChanged &&
    (open.length === 0 ||
      (await isUpToDate(facts, committed, run, open, settings, asks, (text) => warnings.push(text))))
  ) {
    await tidyCommitted(archive, committed, clock());
    return outcomeOf(committed, committed, warnings);
  }
  const another = await isOther(true);
  if (another !== null) return another;
  if (toMend.length > 0)
    job.onNote?.(`${countText(toMend.length, "file")} missing or damaged here: fetching or rebuilding`);
  const seen = job.seen ?? new SeenSource(await knownSource(archive, source.label));
  const onBounded = () => {
    evidence.countsWindows = true;
  };
  const ends = { signal, fetching, onBounded };
  const outlook = await lookAhead(facts, run, committed, settledBefore(), seen, ends);
  // the source answers this job as it should
  job.among?.openLanes();
  const { until, isUnmarked } = outlook;
  const held = {
    layout: archive.layout,
    store: archive.store,
    run,
    committed,
    storageVersion: settledVersion(run),
    final: run.final,
    lost: namesOf(lost),
    ...trustedWork(outlook, settings),
    exactTypes,
  };
  await using journal = await RunJournal.open(held, step);
  for (const { name } of settings.acceptShrink ? [] : open) {
    evidence.of(name).resume(committed?.tables[name]?.attempt.seen ?? []);
    evidence.of(name).resume(journal.held.of(name).evidence);
  }
  journal.ahead = () => evidence.unnoted();
  await journal.dropLost();
  await journalMaps(source, journal, open);
  const wait = async (ns: bigint, why: string) => {
    if (ns <= 0n) return;
    job.onNote?.(`${why}: waiting ${ns / 1_000_000_000n} s for rows that may still arrive`);
    await (job.wait ?? waitFor)(ns, fetching);
  };
  if (isUnmarked && run.final && run.ended !== undefined) {
    const left = run.ended + settings.settleNs - (source.now?.() ?? clock());
    // a slow clock, or an end in the future, must not prolong the wait
    await wait(left < settings.settleNs ? left : settings.settleNs, "the run has only just ended");
  }
  step("planned");

  await makeRealFolder(archive.layout, archive.layout.stagingDir(run));
  await using ownDuckDB = new JobDuckDB();
  const duckdb = job.duckdb ?? ownDuckDB;
  const duckdbMeans = {
    memoryLimitMb: settings.memoryLimitMb,
    threads: isSmall(outlook.facts) ? 1 : settings.threads,
    tempDirectory: archive.layout.stagingDir(run),
  };
  const inTurn = <R>(work: (connection: OpenDuckDB["connection"]) => Promise<R>) =>
    duckdb.inTurn(duckdbMeans, signal, ({ connection }) => work(connection));
  const means = job.among?.means ?? meansOfOne(duckdb, settings);
  await using converter = new BucketConverter(
    means.converterOf(duckdbMeans, signal),
    (table) => exactTypes(table.name),
    step,
    "aside",
    signal,
    job.onConversion,
  );
  for (const { name } of open) {
    // what an interrupted job saw of the source counts as well
    const { fullScan } = journal.held.of(name);
    if (fullScan !== null) seen.resume(name, fullScan);
  }
  const isNumberedHere = (table: Table) => routeOf(source, table).numbers !== "given";
  const context: RunContext = {
    exactTypes,
    journal,
    run,
    until,
    committed: committed?.tables ?? {},
    evidence,
    slices: means.slices,
    order: job.among?.order ?? 0,
    converter,
    work: {
      source,
      pool: means.pool,
      segmentBytes: settings.segmentBytes,
      mostBytes: Math.max(mostSegmentBytes, settings.segmentBytes),
      retry: alsoTelling(job.retry, () => {
        retries++;
      }),
      signal,
      seen,
      onLost: (table, came) => evidence.sent(table, came),
    },
    sliceRows: settings.sliceRows,
    acceptShrink: settings.acceptShrink,
    acceptQuarantine: settings.acceptQuarantine,
    finalPass: settings.finalPass,
    versionNow: () => (run.final ? (version ?? null) : null),
    isChanged,
    recheck: isChanged || isNowMarked(committed, run) || isDue(committed, settings.recheckBefore),
    require: settings.require,
    fingerprint: settings.fingerprint,
    hashOf: (table, files, bounds) => inTurn((connection) => rowHashWithin(connection, table, files, bounds)),
    countGone: (table, before, now) =>
      inTurn((connection) => countGone(connection, before, now, isNumberedHere(table))),
    requireDistinctSeq: (table, files) =>
      inTurn((connection) => requireDistinctSeq(connection, table, files, isNumberedHere(table))),
    versionMoved: () => run.final && version !== run.storageVersion,
    fetching,
    onPlan: job.onPlan ?? (() => {}),
    onRows: (table, count, size) => {
      rows += count;
      bytes += size;
      job.onRows?.(table, count, size);
    },
    onScanned: job.onRows ?? (() => {}),
  };
  const jobs = open.map((table) => new TableArchiver(table, context, outlook.countRows(table)));

  /** Runs one step of all tables side by side; an error that concerns the whole run stops them all. */
  const together = async (action: (table: TableArchiver) => Promise<void>) => {
    const outcomes = await Promise.allSettled(
      jobs.map(async (table) => {
        try {
          await table.attempt(() => action(table));
        } catch (error) {
          // an orderly end lets the others finish their conversions
          if (windDown?.aborted !== true) stop.abort(error);
          throw error;
        }
      }),
    );
    job.signal.throwIfAborted();
    if (stop.signal.aborted) throw stop.signal.reason;
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    const refusal = jobs.length > 1 ? jobs[0]?.error : undefined;
    // a token that may read none of the tables is no table's fault
    if (refusal && jobs.every(({ error }) => error?.code === "permission_denied"))
      throw refusal.concerning("instance");
  };

  windDown?.throwIfAborted();
  await together((table) => table.plan(outlook.facts));
  watch.end("plan");
  if (isUnmarked && run.final && run.ended === undefined && jobs.some((table) => table.isScanned)) {
    await wait(settings.settleNs, "the gateway does not say when the run ended");
  }
  const text = jobs.reduce((sum, table) => sum + textBytes(table.table, table.rowsToFetch), 0);
  for (const disk of archive.layout.disks) await refuseWhenFull(disk, diskBytes(text));
  let left = jobs.length;
  const onFetched = () => {
    left--;
    // a small run is finished together with others, so another may begin; a large one keeps the machine busy by itself
    if (left === 0 && rows < smallRows) job.among?.leaveLane();
  };
  await together((table) => table.fetch(onFetched));
  watch.end("fetch");
  // if the other transport says after the rows what the first said before them, one request has compared both
  const agreed =
    run.final && outlook.facts !== null ? await sameByOtherWay(facts, run, outlook.facts, signal) : null;
  let latest = agreed ?? (await outlook.factsNow());
  /** Facts up to the horizon, which may have moved back. */
  const factsWithin = () =>
    context.until === until ? outlook.factsNow() : facts.facts(run, { to: context.until }, signal);
  const reconcile = async (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      let more = false;
      await together(async (table) => {
        if (await table.reconcile(latest)) more = true;
      });
      if (!more) break;
      job.onNote?.("row counts differ from the gateway's: fetching the changed windows again");
      await together((table) => table.fetch());
      latest = await factsWithin();
    }
  };
  await reconcile(2);
  // asked again to notice a version that has changed meanwhile, and to get documents that match the rows
  let now = await describedAgain(lists, run, warnings, signal);
  for (let round = 0; run.final && now.storageVersion !== version; round++) {
    if (round === 2) {
      for (const table of jobs) table.contradict(restless(now.storageVersion));
      break;
    }
    job.onNote?.("the run's storage version changed meanwhile: its rows are streamed again and compared");
    version = now.storageVersion;
    let more = false;
    // dropped rows came under the earlier version, new ones come under this one
    evidence.isOf(settledVersion(now), false);
    await together((table) => table.streamAgain(latest));
    evidence.isOf(settledVersion(now));
    await together(async (table) => {
      if (await table.planStreamed(latest)) more = true;
    });
    if (more) await together((table) => table.fetch());
    // comparing the held rows does not show new ones
    latest = await outlook.factsNow();
    await reconcile(2);
    now = await describedAgain(lists, run, warnings, signal);
    if (more || now.storageVersion === version) continue;
    warnings.push("the gateway's storage version changes while the rows stay the same: it is ignored");
    version = undefined;
    break;
  }
  evidence.isOf(settledVersion(now));
  const settle = async () => {
    await together((table) => table.fetch());
    latest = await factsWithin();
    await reconcile(1);
    return latest;
  };
  const looks = {
    ...{ source, evidence, jobs, together, settle, factsNow: factsWithin },
    hasNewVersion: async () => {
      const told = new Set<string | null>();
      for (let look = 0; look < descriptions; look++) {
        source.reconnect?.();
        told.add(settledVersion(await describedAgain(lists, run, warnings, signal)));
      }
      return told.size === 1 && told.has(evidence.version) && evidence.isNew;
    },
    onNote: job.onNote ?? (() => {}),
  };
  // the facts document kept for a run that has not ended counts rows as well: no more than are proven
  const whole = run.final || latest === null ? null : await facts.facts(run, {}, signal);
  latest = await lookAgain(looks, latest);
  /** Proves that no rows lie outside those here; repeats it a few times if the gateway drops rows meanwhile. */
  const proveFilled = async (left = mostBeginnings): Promise<void> => {
    await together((table) => table.proveFilled(latest));
    let isLater = false;
    await together(async (table) => {
      if (await table.planBegunLater(latest)) isLater = true;
    });
    if (!isLater || left === 0) return;
    latest = await lookAgain(looks, await settle());
    await proveFilled(left - 1);
  };
  // this also finds rows that are not counted
  if (run.final) await proveFilled();
  const warn = (text: string) => {
    if (!warnings.includes(text)) warnings.push(text);
  };
  const differingNow = async () => {
    if (agreed !== null && agreed === latest) return new Map<TableName, RunvaultError>();
    const bounds = context.until === undefined ? {} : { to: context.until };
    return differingTables(facts, run, bounds, latest, warn, signal);
  };
  // before a run has ended, only once the horizon is where both can agree
  let differing = run.final ? await differingNow() : undefined;
  if (differing !== undefined && (differing.size > 0 || jobs.some((table) => table.mayAgreeLater(latest)))) {
    const { settleNs, factsPauseNs } = settings;
    await wait(
      settleNs < factsPauseNs ? settleNs : factsPauseNs,
      "the gateway's counts may lag behind its rows",
    );
    latest = await outlook.factsNow();
    const again = jobs.filter((table) => table.forgetDissent());
    await together(async (table) => {
      if (again.includes(table)) await table.plan(latest);
    });
    await together((table) => table.fetch());
    latest = await outlook.factsNow();
    await reconcile(1);
    differing = await differingNow();
  }
  /** Moves the horizon of a run that has not ended back to where counts and rows agree. True if there is such an instant. */
  const fallBack = async (agreedUntil: (table: TableArchiver) => Promise<Nanoseconds | undefined>) => {
    const agreed: Nanoseconds[] = [];
    await together(async (table) => {
      const until = await agreedUntil(table);
      if (until !== undefined) agreed.push(until);
    });
    if (agreed.length === 0) return false;
    const until = agreed.reduce((a, b) => (a < b ? a : b));
    context.until = until;
    latest = await facts.facts(run, { to: until }, signal);
    await together((table) => table.fallBack(latest));
    await together((table) => table.fetch());
    latest = await facts.facts(run, { to: until }, signal);
    return true;
  };
  await fallBack((table) => table.findAgreedUntil(latest));
  differing ??= await differingNow();
  const doubted = jobs.filter(({ table }) => !run.final && differing?.has(table.name));
  const others = { facts: (...[run, bounds, signal]: FactsAsked) => facts.otherFacts(run, bounds, signal) };
  const agreedWithOthers = async (job: TableArchiver) =>
    doubted.includes(job)
      ? await job.findAgreedUntil(latest, countRowsOf(others, run, job.table, signal))
      : undefined;
  if (doubted.length > 0 && (await fallBack(agreedWithOthers))) differing = await differingNow();
  for (const table of jobs) table.contradict(differing.get(table.table.name));
  await proveFilled();
  // a table without rows is judged by what these have shown
  let summary: Promise<Uint8Array | null> | undefined;
  const summaryOnce = () => {
    // describing the run again may have brought it
    summary ??= (now === run ? source : lists).document(run, "summary", signal);
    return summary;
  };
  const filled = filledTables(latest, journal.held, context.committed);
  let isMore = false;
  await together(async (table) => {
    if (await table.proveEmpty(latest, filled, summaryOnce)) isMore = true;
  });
  if (isMore) {
    await together((table) => table.fetch());
    await proveFilled();
  }
  for (const table of jobs) await table.holdAgainstSummary(() => summaryOnce().catch(() => null));
  step("certified");
  watch.end("prove");

  const checkedAt = isoOf(clock());
  const results: Partial<Record<TableName, TableManifest>> = { ...committed?.tables };
  for (const table of jobs) results[table.table.name] = await table.result(latest, checkedAt);
  const former = Object.entries(committed?.documents ?? {}).filter(([, { file }]) => !held.lost.has(file));
  const documents = await fetchDocuments(
    source,
    lists,
    run,
    journal,
    now !== run,
    { summary: summaryOnce, facts: (run.final ? latest : whole)?.text },
    Object.fromEntries(former),
    warnings,
    signal,
  );
  const manifest: Manifest = {
    format: 2,
    instanceId: run.instanceId,
    runId: run.runId,
    generation: journal.generation,
    state: stateOf(results),
    run: {
      status: run.status,
      started: run.started?.toString() ?? null,
      ended: run.ended?.toString() ?? null,
      final: run.final,
      ...(run.final && !run.isMarkedFinal ? { unmarked: true as const } : {}),
      storageVersion: run.final ? (version ?? null) : (run.storageVersion ?? null),
    },
    source: source.label,
    horizon: context.until?.toString() ?? null,
    closedAt: null,
    tables: Object.fromEntries(
      tableNames.flatMap((name) => (results[name] === undefined ? [] : [[name, results[name]]])),
    ),
    documents,
    tool: job.tool,
    startedAt,
    committedAt: isoOf(clock()),
    durationMs: Math.round(performance.now() - startedMs),
    retries,
  };
  const { resumedSegments } = journal.held;
  if (isChanged && committed !== null) await joinAddress(archive, committed.source, source.label);
  await commitRun(archive, manifest, journal, step);
  const named = (isEmpty: boolean) =>
    open.flatMap(({ name }) => {
      const rows = latestView(manifest.tables[name])?.certificate?.rows;
      return rows !== undefined && (rows === 0) === isEmpty ? [name] : [];
    });
  await rememberSource(archive, source.label, (known) => ({
    ...seen.toRemember(known, run.instanceId, { filled: named(false), empty: named(true) }),
    ...(lists.marksFinal ? { marksFinal: true as const } : {}),
  }));
  await journal.remove();
  step("pending-removed");
  watch.end("commit");
  const tooNarrow = jobs.flatMap(({ error }) => error?.wider ?? []);
  return { manifest, changed: true, resumedSegments, steps: watch.times, tooNarrow, rows, bytes, warnings };
}

/** How many times in a row a version must be reported before rows may rightly differ from those under another. */
const descriptions = 6;

/** Fewer rows than this are converted before a second thread would help. */
const smallRows = 300_000;

function isSmall(facts: StorageFacts | null): boolean {
  return facts !== null && [...facts.values()].reduce((sum, { rows }) => sum + rows, 0n) < BigInt(smallRows);
}

/** Which work of an interrupted job may be continued: all, or only what was stored within `settleNs`. */
export function trustedWork({ isUnmarked }: RunHorizon, { settleNs }: Pick<ArchiveSettings, "settleNs">) {
  return isUnmarked ? { notedSinceMs: Date.now() - Number(settleNs / 1_000_000n) } : {};
}

/**
 * A run that its source no longer knows stays as it was proven. That is recorded if more rows were expected, an earlier
 * attempt failed, or the operator closes the run. Throws the source's own error if nothing of the run is archived, and
 * `archive_damaged` if lost files cannot be rebuilt from what is here.
 */
async function keepGoneRun(
  job: ArchiveJob,
  wanted: readonly Table[],
  at: string,
  error: RunvaultError,
): Promise<RunOutcome> {
  const { archive, run, tool, step = () => {} } = job;
  const isGone = error.code === "run_not_found" || error.code === "instance_not_found";
  const before = isGone ? await archive.manifest(run) : null;
  if (before === null) throw error;
  const isMended = await mendGoneRun(job, before, wanted, error);
  await using _lock = await lockRun(archive.layout, run, job.signal);
  await archive.refresh();
  const committed = (await archive.manifest(run)) ?? before;
  await requireWholeGone(archive, committed, wanted, error);
  const isClosed = committed.closedAt !== null || job.settings?.close === true;
  const names = wanted.map(({ name }) => name);
  const hint = isClosed
    ? "The run is closed. `--allow-incomplete` shows the rows of these tables that arrived."
    : "Check the gateway's retention; if no more rows will come, `archive --close` accepts what is proven as all there is.";
  const lacks = isClosed ? "nothing is proven of the table" : "the archive does not hold all of it";
  const gone = new RunvaultError("incomplete", `${error.message}, and ${lacks}`, { hint });
  const exactTypes = typesNow(archive);
  const attempt = { archive, committed, tables: names, error: gone, at, exactTypes, tool, step };
  const manifest = await recordAttempt({ ...attempt, situation: "gone", isClosed });
  const isBehind = names.some((name) => {
    const table = manifest.tables[name];
    return table !== undefined && isAmiss(table);
  });
  return outcomeOf(
    manifest,
    isMended ? before : committed,
    isBehind ? [] : [`${error.message}: what was proven stays`],
  );
}

/**
 * The run as its source describes it now. If the source cannot say, the earlier description stands, with a warning: the
 * rows were proven without it. Throws if the source no longer has the run.
 */
async function describedAgain(
  lists: RunLists,
  run: RunDescription,
  warnings: string[],
  signal: AbortSignal,
): Promise<RunDescription> {
  try {
    return await lists.describeAgain(run, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    const error = RunvaultError.from(thrown);
    const isGone = error.code === "run_not_found" || error.code === "instance_not_found";
    if (isGone || !error.isGateways || mayComeLater(error) || error.scope === "job") throw error;
    warnings.push(`the run document is not available: ${error.message}`);
    return run;
  }
}

/** Whether a document may come later; a page of HTML may be how a gateway answers for a route that it lacks. */
function mayComeLater({ retry, code }: RunvaultError): boolean {
  return retry === "again" && code !== "not_a_gateway";
}

function restless(version: string | undefined): RunvaultError {
  return new RunvaultError(
    "unverified",
    `the run's rows changed each time they were fetched; its storage version is now ${JSON.stringify(version)}`,
    { hint: "Run the same command again once the run no longer changes at the gateway." },
  );
}

async function waitFor(ns: bigint, signal: AbortSignal): Promise<void> {
  try {
    await setTimeout(timerMs(Number(ns / 1_000_000n)), undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** The result of a job that fetched nothing. */
function outcomeOf(manifest: Manifest, before: Manifest, warnings: readonly string[]): RunOutcome {
  const nothing = { resumedSegments: 0, steps: {}, tooNarrow: [], rows: 0, bytes: 0 };
  return { manifest, changed: manifest !== before, ...nothing, warnings };
}

/**
 * The run's documents; those in `known` were requested already. A document that the gateway refuses, or that JSON readers
 * would reject, stays as it is held, with a warning: the rows are proven without it. If the source no longer has the run,
 * that is an error.
 */
async function fetchDocuments(
  source: HistorySource,
  lists: RunLists,
  run: RunRef,
  journal: RunJournal,
  isDescribed: boolean,
  known: { readonly summary: () => Promise<Uint8Array | null>; readonly facts: Uint8Array | undefined },
  former: Manifest["documents"],
  warnings: string[],
  signal: AbortSignal,
): Promise<Manifest["documents"]> {
  const documents: Manifest["documents"] = {};
  for (const kind of documentKinds) {
    if (kind === "run" && !isDescribed) {
      if (former.run !== undefined) documents.run = former.run;
      continue;
    }
    let bytes: Uint8Array | null;
    try {
      // the run was described again once its rows were here
      if (kind === "instance" || (kind === "run" && isDescribed))
        bytes = await lists.document(run, kind, signal);
      else if (kind === "summary") bytes = await known.summary();
      else bytes = (kind === "facts" && known.facts) || (await source.document(run, kind, signal));
    } catch (thrown) {
      signal.throwIfAborted();
      const error = RunvaultError.from(thrown);
      if (!error.isGateways || mayComeLater(error) || error.scope === "job") throw error;
      if (kind === "run" && (error.code === "run_not_found" || error.code === "instance_not_found"))
        throw error;
      warnings.push(`the ${kind} document is not available: ${error.message}`);
      if (former[kind] !== undefined) documents[kind] = former[kind];
      continue;
    }
    if (bytes === null) continue;
    const excess = excessOf(bytes);
    if (excess !== null) {
      warnings.push(`the ${kind} document was left out: it ${excess}`);
      if (former[kind] !== undefined) documents[kind] = former[kind];
      continue;
    }
    const sha256 = sha256Of(bytes);
    if (former[kind]?.sha256 === sha256) {
      documents[kind] = former[kind];
      continue;
    }
    const file = journal.nextName(kind, "json");
    await journal.writeDocument(file, bytes);
    documents[kind] = { file, storedBytes: bytes.byteLength, sha256 };
  }
  return documents;
}

type FactsAsked = Parameters<HistorySource["facts"]>;

function stateOf(results: Partial<Record<TableName, TableManifest>>): TableState {
  return runState(Object.values(results).map(({ state }) => state));
}
