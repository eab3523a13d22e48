import { countText } from "../../model/text/plural.ts";
import { bucketAt } from "../bucket.ts";
import { acceptanceOf, acceptanceText, isAmiss } from "../manifest/acceptance.ts";
import { acceptedAside, attemptText } from "../manifest/attempt-text.ts";
import {
  type Manifest,
  runState,
  type Segment,
  type TableManifest,
  tableState,
} from "../manifest/manifest.ts";
import { provenView, type TableView } from "../manifest/table-view.ts";
import { throughWords } from "../manifest/through-words.ts";
import { tablesOf } from "./verify-files.ts";
import type { CheckList, Fault } from "./verify-report.ts";

/** Checks that a manifest is consistent, before any file is read. */
export function checkManifest(list: CheckList, manifest: Manifest): void {
  const tables = tablesOf(manifest);
  const state = runState(tables.map(([, table]) => table.state));
  if (state !== manifest.state) {
    list.add(
      null,
      "state",
      "damaged",
      `the manifest says that the run is ${manifest.state}, but by its tables it is ${state}`,
    );
  } else if (tables.some(([, table]) => isAmiss(table))) {
    list.add(null, "state", "unproven", `the run is ${state}`);
  } else list.add(null, "state", "ok", `the run is ${state}`);
  for (const [name, table] of tables) {
    list.faults(name, "state", partFaults(table), table.state);
    const attempt = attemptText(table);
    const accepted = acceptanceOf(table);
    if (accepted !== null) list.accept(name);
    const beside = accepted === null ? "" : `; ${acceptanceText(accepted)}`;
    if (attempt !== null) list.add(name, "state", "unproven", `${attempt}${beside}`);
    const aside = acceptedAside(table);
    if (aside > 0) {
      list.add(
        name,
        "quarantine",
        "notice",
        `${countText(aside, "row")} set aside, as the operator accepted`,
      );
    }
    for (const view of viewsOf(table)) {
      const { segments, parquet } = view;
      list.faults(name, "state", stateFaults(view), view.state);
      list.faults(name, "certificate", certificateFaults(view), certificateSummary(view));
      list.faults(
        name,
        "segment-windows",
        windowFaults(view),
        `${countText(segments.length, "window")}, disjoint and in order`,
      );
      list.faults(name, "parquet-buckets", bucketFaults(view), countText(parquet.length, "bucket"));
    }
  }
}

/** A table's proven part and a later attempt's: each must be consistent by itself. */
function viewsOf(table: TableManifest): TableView[] {
  const proven = provenView(table);
  const views = proven === undefined ? [] : [proven];
  const { outcome, holding, error } = table.attempt;
  if (holding === null) return views;
  return [
    ...views,
    { ...holding, state: outcome === "ok" ? "UNVERIFIED" : table.state, grain: table.grain, error },
  ];
}

/** Checks the proven part, the latest attempt and the state above both. */
function partFaults(table: TableManifest): Fault[] {
  const { state, proven, attempt, accepted } = table;
  const faults: Fault[] = [];
  const must = (holds: boolean, detail: string) => {
    if (!holds) faults.push({ detail });
  };
  const own = tableState(table);
  must(state === own, `the manifest says that the table is ${state}, but by its parts it is ${own}`);
  const isOk = attempt.outcome === "ok";
  must(!isOk || proven !== null, "its latest attempt was ok, but nothing is proven");
  // for rows that the gateway no longer has, a note says why they are kept
  const mayHaveOwn = !isOk || attempt.notes.length > 0;
  must(mayHaveOwn || attempt.holding === null, "its latest attempt was ok, but has separate rows");
  must(isOk === (attempt.behindSince === null), "its latest attempt and behindSince contradict each other");
  must(isOk || proven !== null || attempt.holding !== null, "no rows are proven, and none are kept");
  const isOfAttempt = accepted === undefined || acceptanceOf(table) !== null;
  must(isOfAttempt, "the acceptance is of an earlier attempt, not the latest");
  // rows set aside, and a proof weaker than required, are not errors
  must(
    attempt.outcome !== "INCOMPLETE" || attempt.error !== null,
    "its latest attempt failed without an error",
  );
  must(
    !isOk || attempt.error === null,
    `its latest attempt was ok, but has the error ${attempt.error?.code}`,
  );
  return faults;
}

function stateFaults({ state, certificate, segments, parquet, quarantine }: TableView): Fault[] {
  const faults: Fault[] = [];
  const must = (holds: boolean, what: string) => {
    if (!holds) faults.push({ detail: `${state}, but ${what}` });
  };
  if (state === "ABSENT") {
    must(certificate === null, "it has a certificate");
    must(segments.length + parquet.length + quarantine.length === 0, "it has files");
    return faults;
  }
  must(certificate !== null, "it has no certificate");
  if (certificate === null) return faults;
  if (state === "COMPLETE" || state === "OPEN" || state === "QUARANTINED") {
    must(certificate.proof !== "none", "nothing proves it");
    must(certificate.ended === "clean", "its last stream was truncated");
  }
  if (state === "COMPLETE") must(certificate.until === null, "its certificate only goes up to a time");
  if (state === "OPEN") must(certificate.until !== null, "its certificate names no end time");
  if (state === "COMPLETE" || state === "OPEN") {
    must(certificate.quarantined === 0 || certificate.quarantineAccepted, "rows were set aside");
  }
  if (state === "QUARANTINED") must(certificate.quarantined > 0, "no rows were set aside");
  return faults;
}

function certificateFaults(table: TableView): Fault[] {
  const { certificate, segments, parquet, quarantine, state } = table;
  if (certificate === null) return [];
  const faults: Fault[] = [];
  const must = (holds: boolean, detail: string) => {
    if (!holds) faults.push({ detail });
  };
  const inSegments = sum(segments);
  const aside = sum(quarantine);
  must(
    inSegments === certificate.rows,
    `${countText(certificate.rows, "row")} certified, but its segments have ${inSegments}`,
  );
  must(
    aside === certificate.quarantined,
    `${countText(certificate.quarantined, "row")} certified as set aside, but the quarantine has ${aside}`,
  );
  // rows that the gateway no longer keeps are not in its count
  if (
    (certificate.proof === "counted" || certificate.proof === "hashed") &&
    certificate.gatewayFrom === null
  ) {
    const counted = BigInt(certificate.rows + certificate.quarantined);
    must(
      certificate.gatewayRows !== null && BigInt(certificate.gatewayRows) === counted,
      `${countText(counted, "row")} certified, but the gateway counted ${certificate.gatewayRows ?? "none"}`,
    );
  }
  // a table that failed after this certificate, or mid-run, may lack Parquet
  if (state !== "INCOMPLETE" && state !== "UNVERIFIED") {
    const inParquet = sum(parquet);
    must(
      inParquet === certificate.rows,
      `${countText(certificate.rows, "row")} certified, but its Parquet files have ${inParquet}`,
    );
  }
  must(sameKey(certificate.first, parquet[0]?.first), "its first key is not that of its first Parquet file");
  must(sameKey(certificate.last, parquet.at(-1)?.last), "its last key is not that of its last Parquet file");
  const { until, rowHash } = certificate;
  must(certificate.proof !== "hashed" || rowHash !== null, "certified by a row hash that it lacks");
  if (until !== null) {
    const beyond = segments.find(({ to }) => BigInt(to) > BigInt(until));
    must(beyond === undefined, `certified up to ${until}, but a segment goes up to ${beyond?.to}`);
  }
  if (rowHash !== null) {
    must(
      BigInt(rowHash.rows) === BigInt(certificate.rows),
      `its row hash covers ${rowHash.rows} of ${certificate.rows} rows`,
    );
  }
  return faults;
}

function certificateSummary({ certificate, through }: TableView): string {
  if (certificate === null) return "absent";
  const { rows, proof, gatewayRows } = certificate;
  const counted = gatewayRows === null ? "" : `, the gateway counted ${gatewayRows}`;
  return `${[`${countText(rows, "row")}, proof ${proof}${counted}`, ...throughWords(through)].join(", ")}`;
}

/** Windows must be disjoint, ordered, and inside their buckets; only parts of an unsorted answer share one. */
function windowFaults({ segments, grain }: TableView): Fault[] {
  const faults: Fault[] = [];
  let before: Segment | undefined;
  for (const segment of segments) {
    const { file, bucket, sorted } = segment;
    const [from, to] = [BigInt(segment.from), BigInt(segment.to)];
    const wrong = (what: string) => faults.push({ detail: `segment ${file} [${from}, ${to}) ${what}` });
    if (from >= to) wrong("has an empty window");
    const part =
      before !== undefined &&
      !sorted &&
      !before.sorted &&
      before.from === segment.from &&
      before.to === segment.to;
    if (before !== undefined && !part && from < BigInt(before.to))
      wrong(`overlaps ${before.file} or comes before it`);
    const own = bucketAt(grain, from);
    if (own.name !== bucket) wrong(`is in bucket ${bucket}, but its window starts in ${own.name}`);
    else if (own.to !== undefined && to > own.to) wrong(`goes beyond the end of its bucket ${bucket}`);
    before = segment;
  }
  return faults;
}

/** Each bucket with rows must have one Parquet file with as many rows, ordered, with keys inside the bucket. */
function bucketFaults({ segments, parquet, grain, state }: TableView): Fault[] {
  const faults: Fault[] = [];
  const rows = new Map<string, number>();
  for (const segment of segments) rows.set(segment.bucket, (rows.get(segment.bucket) ?? 0) + segment.rows);
  const seen = new Set<string>();
  let last: bigint | undefined;
  for (const { file, bucket, rows: own, first, last: end } of parquet) {
    const wrong = (what: string) =>
      faults.push({ detail: `Parquet file ${file} of bucket ${bucket} ${what}` });
    if (seen.has(bucket)) wrong("is the second of its bucket");
    seen.add(bucket);
    if (own !== rows.get(bucket))
      wrong(`has ${countText(own, "row")}, but its segments have ${rows.get(bucket) ?? 0}`);
    const [from, to] = [BigInt(first.ts), BigInt(end.ts)];
    if (from > to || (from === to && BigInt(first.seq) > BigInt(end.seq))) wrong("ends before it starts");
    if (bucketAt(grain, from).name !== bucket || bucketAt(grain, to).name !== bucket)
      wrong("has keys outside its bucket");
    if (last !== undefined && from <= last) wrong("does not come after the one before it");
    last = to;
  }
  if (state === "INCOMPLETE" || state === "UNVERIFIED") return faults;
  for (const [bucket, count] of rows) {
    if (count > 0 && !seen.has(bucket))
      faults.push({ detail: `bucket ${bucket} has ${countText(count, "row")} but no Parquet file` });
  }
  return faults;
}

function sameKey(a: { ts: string; seq: string } | null, b: { ts: string; seq: string } | undefined): boolean {
  return a === null ? b === undefined : a.ts === b?.ts && a.seq === b.seq;
}

function sum(files: readonly { rows: number }[]): number {
  return files.reduce((total, { rows }) => total + rows, 0);
}
