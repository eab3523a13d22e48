import { RunvaultError } from "../../../model/error.ts";
import type { RunRef } from "../../../model/source.ts";
import { countText } from "../../../model/text/plural.ts";
import { formatTime } from "../../../model/time.ts";
import type { FactFields } from "../profile.ts";
import { planRows, type RowPlan } from "../rows/row-plan.ts";
import { refusalText } from "./asker.ts";
import { badReasons } from "./canonical-rows.ts";
import type { CountedTable } from "./check-documents.ts";
import { lookAtRows } from "./column-look.ts";
import { checkBounds } from "./heed-bounds.ts";
import { checkFilters, checkIds } from "./heed-ids.ts";
import { checkPages } from "./heed-pages.ts";
import { type JsonObject, nodeAt } from "./json-node.ts";
import type { ColumnCheck, Finding, TableCheck } from "./profile-check.ts";
import { reachableProof } from "./reachable-proof.ts";
import { nextOf, shortText, valueAt } from "./row-page.ts";
import { missingFrom, orderOf, type SampleRow, scalarText, settled } from "./sample.ts";
import {
  askRows,
  heed,
  isGiven,
  keyOf,
  limitName,
  type Page,
  sampleLimit,
  type TableProbe,
  tellHeed,
  tellUnchecked,
} from "./table-rows.ts";
import { isLikelyTime } from "./times.ts";

/** Most requests for one table. */
export const requestsOfTable = 12;

export interface TableGround {
  readonly probe: TableProbe;
  /** Runs to try if the chosen one has no rows, and to compare with it. */
  readonly others: readonly RunRef[];
  readonly facts: FactFields | undefined;
  /** The gateway's counts of this table in the run; undefined if it has none. */
  readonly counted: CountedTable | undefined;
}

/** Checks one table of a profile against the gateway. */
export async function checkTable(ground: TableGround): Promise<TableCheck> {
  const { probe } = ground;
  try {
    return await looked(ground);
  } catch (thrown) {
    if (!(thrown instanceof RunvaultError) || ["interrupted", "deadline"].includes(thrown.code)) throw thrown;
    probe.findings.push({
      kind: "no_answer",
      key: keyOf(probe, "path"),
      message: thrown.message,
      hint: thrown.hint ?? "Try again; the gateway's log may say why.",
    });
    return told(ground, undefined, [], []);
  }
}

async function looked(ground: TableGround): Promise<TableCheck> {
  let { probe } = ground;
  let sample = await askRows(probe, {});
  if (limitName(probe.route) !== undefined && [400, 413, 422].includes(sample.told.status)) {
    const smaller = await askRows(probe, { limit: fewRows });
    if (isGiven(smaller)) {
      tellTooMany(probe, sample);
      probe = { ...probe, route: { ...probe.route, largestLimit: fewRows } };
      sample = smaller;
    }
  }
  if (!isGiven(sample)) {
    tellNoRows(probe, sample);
    return told({ ...ground, probe }, sample, [], []);
  }
  let others = ground.others;
  if (sample.rows.length === 0) {
    // another run may have what this one lacks
    for (const other of others.slice(0, 2)) {
      const elsewhere = { ...probe, run: other };
      const page = await askRows(elsewhere, {});
      if (!isGiven(page) || page.rows.length === 0) continue;
      others = [probe.run, ...others.filter((one) => one !== other)];
      probe = elsewhere;
      sample = page;
      break;
    }
  }
  if (sample.rows.length === 0) {
    if (ground.counted?.rows !== 0n) tellNothing(probe, ground.counted?.rows);
    return told({ ...ground, probe }, sample, [], []);
  }
  const rows = sample.rows;
  checkOrder(probe, rows);
  await heed(probe, "repeated request", "path", () => checkAgain(probe, rows));
  await heed(probe, "the next page", "pages", () => checkPages(probe, sample));
  const isWhole = isAll(probe, sample);
  if (hasTimes(rows)) {
    if (probe.run === ground.probe.run) checkCounted(probe, rows, ground.counted);
    await heed(probe, "from and to", "parameters", () => checkBounds(probe, rows, isWhole));
  } else tellUnchecked(probe, "from and to", "the times of the rows must be right first");
  await checkIds(probe, rows, nearest(others, probe.run));
  await checkFilters(probe);
  tellStrangers(probe);
  // all rows seen, because another page may have fields that the first lacks
  const plan = planRows(probe.table, probe.map, probe.run);
  const seen = [...probe.seen.values()];
  const { columns, unused, findings } = lookAtRows(plan, probe.map, seen, probe.key);
  // reasons that the findings above already explain are not repeated
  if (findings.every(({ kind }) => kind === "unused_field")) findings.push(...badRows(probe, plan, seen));
  return told(
    { ...ground, probe: { ...probe, findings: [...findings, ...probe.findings] } },
    sample,
    columns,
    unused,
  );
}

/** Whether the sample is known to be the whole table. */
function isAll({ route }: TableProbe, { told, around, rows }: Page): boolean {
  const { pages } = route;
  switch (pages.by) {
    case "none":
      return limitName(route) === undefined;
    case "offset":
    case "number": {
      const total = pages.total === undefined ? undefined : valueAt(pages.total, told, around);
      return total === `${rows.length}`;
    }
    default:
      return nextOf(pages, told, around) === undefined;
  }
}

function hasTimes(rows: readonly SampleRow[]): boolean {
  return rows.every(({ ts }) => ts !== undefined && isLikelyTime(ts));
}

/** Compares the gateway's counts with the rows that it sends. */
function checkCounted(
  { findings, route, table }: TableProbe,
  rows: readonly SampleRow[],
  counted: CountedTable | undefined,
): void {
  if (counted === undefined) return;
  const documents = `${route.rpc === undefined ? "" : "rpc."}documents.storage`;
  if (BigInt(rows.length) > counted.rows) {
    findings.push({
      kind: "facts",
      key: `${documents}.rows`,
      message: `the gateway counts ${countText(counted.rows, "row")} of ${table.name}, but one answer had ${rows.length}`,
      hint: "Use the field that counts the run's rows, or look up the parameters for run and instance.",
    });
  }
  const [side, end] =
    route.order === "ascending"
      ? (["first", counted.first] as const)
      : route.order === "descending"
        ? (["last", counted.last] as const)
        : (["first", undefined] as const);
  const ts = rows[0]?.ts;
  if (end === undefined || ts === undefined || end === ts || end / 1_000_000_000n === ts / 1_000_000_000n)
    return;
  findings.push({
    kind: "facts",
    key: `${documents}.${side}`,
    message: `the gateway gives ${formatTime(end)} for the ${side} row of ${table.name}, but that row has ${formatTime(ts)}`,
    hint: `Use the field with the time of the ${side} row and the right unit, or correct ts_event.`,
  });
}

/** A limit that any gateway accepts. */
const fewRows = 6;

function tellTooMany(probe: TableProbe, { told }: Page): void {
  const { findings, route } = probe;
  findings.push({
    kind: "not_heeded",
    key: keyOf(probe, "largest_limit"),
    message: `${limitName(route)}=${sampleLimit(route)} failed: ${refusalText(told)}; ${limitName(route)}=${fewRows} returned rows`,
    hint: "Look up the largest limit that the gateway accepts, and write it as `largest_limit`.",
  });
}

/** The run most easily confused with this one: the same id in another instance, or the same instance. */
function nearest(others: readonly RunRef[], run: RunRef): RunRef | undefined {
  const different = others.filter((one) => one.runId !== run.runId || one.instanceId !== run.instanceId);
  return (
    different.find(({ runId }) => runId === run.runId) ??
    different.find(({ instanceId }) => instanceId === run.instanceId) ??
    different[0]
  );
}

function told(
  { probe, facts, counted }: TableGround,
  sample: Page | undefined,
  columns: readonly ColumnCheck[],
  unused: TableCheck["unused"],
): TableCheck {
  const { table, run, findings, heeds, asker, route } = probe;
  return {
    table: table.name,
    run,
    request: sample?.told.request ?? `${route.method} ${route.path}`,
    status: sample?.told.status ?? null,
    mediaType: sample?.told.mediaType ?? null,
    holds: sample === undefined || !isGiven(sample) ? "" : countText(sample.rows.length, "row"),
    rows: sample?.rows.length ?? 0,
    columns,
    unused,
    heeds,
    proof: reachableProof({ route, facts: counted === undefined ? undefined : facts, findings }),
    findings,
    requests: asker.requests,
  };
}

function tellNoRows(probe: TableProbe, { told, fault }: Page): void {
  const { findings, route, asker } = probe;
  if (fault !== undefined) {
    const at =
      fault.about === "media_type" ? "rows.media_types" : route.rows.form === "array" ? "rows.array" : "rows";
    findings.push({ kind: fault.about, key: keyOf(probe, at), message: fault.message, hint: fault.hint });
    return;
  }
  const { status, text } = told;
  const message = `${told.request} failed: ${refusalText(told)}`;
  if (route.rpc !== undefined) {
    // over RPC, not_found means the run; a missing method is unimplemented
    const at = status === 501 ? "path" : "parameters";
    const hint = status === 401 ? asker.unauthenticatedHint : rpcStatusHint(status);
    findings.push({ kind: "no_answer", key: keyOf(probe, at), message, hint });
    return;
  }
  const hint = status === 401 ? asker.unauthenticatedHint : statusHint(status);
  const beginning = shortText(text.trim().split("\n", 1)[0]!, 120);
  findings.push({
    kind: "no_answer",
    key: keyOf(probe, status === 404 || status === 405 ? "path" : "parameters"),
    message,
    hint: beginning === "" ? hint : `${hint} The answer begins with ${beginning}`,
  });
}

function rpcStatusHint(status: number): string {
  if (status === 404)
    return "The gateway found no such run: look up which fields name the run and the instance.";
  if (status === 501) return "The gateway has no such method: look up its name, and `base` of rpc.";
  return statusHint(status).replace(
    "a parameter: look up names and formats",
    "the request: look up its fields",
  );
}

function statusHint(status: number): string {
  if (status === 403) return "Check the token, or the headers in the profile.";
  if (status === 404 || status === 405)
    return "The gateway knows no such path or no such run: look up the path and the parameters for the run.";
  if (status >= 500) return "The gateway failed; its log may say why.";
  return "The gateway rejected a parameter: look up names and formats.";
}

function tellNothing(probe: TableProbe, counted: bigint | undefined): void {
  const { findings, key, table, heeds } = probe;
  findings.push(
    counted === undefined
      ? {
          kind: "no_rows",
          key,
          message: "there were no rows, so this table was not checked",
          hint: `Name a run that has ${table.name}, as INSTANCE/RUN; if the gateway keeps no such history, write \`${table.name}: none\`.`,
        }
      : {
          kind: "no_rows",
          key: keyOf(probe, "parameters"),
          message: `there were no rows, but the gateway counts ${countText(counted, "row")}`,
          hint: "Look up the names of the parameters for the run and the instance.",
        },
  );
  heeds.length = 0;
}

function badRows({ key, table }: TableProbe, plan: RowPlan, rows: readonly JsonObject[]): Finding[] {
  const reasons = badReasons(
    plan,
    rows.map(({ text }) => text),
  );
  return [...reasons].slice(0, 3).map(([reason, count]) => ({
    kind: "bad_row",
    key: `${key}.columns`,
    message: `${count} of ${countText(rows.length, "row")} cannot be read as rows of ${table.name}: ${reason}`,
    hint: "Correct the profile's entry for the column, or for its fields.",
  }));
}

/** Reports rows of another run or instance than requested. */
function tellStrangers({ findings, key, strangers }: TableProbe): void {
  for (const [column, { value, asked }] of strangers) {
    findings.push({
      kind: "other_run",
      key: `${key}.columns.${column}`,
      message: `a row has ${JSON.stringify(shortText(value))}, but ${JSON.stringify(asked)} was requested`,
      hint: "Either this is the wrong field, or a parameter is misnamed and the gateway sends other rows.",
    });
  }
}

/** Checks that rows come in the profile's order, and that seq really numbers rows. */
function checkOrder(probe: TableProbe, rows: readonly SampleRow[]): void {
  const { route, map, findings, key } = probe;
  const seen = orderOf(rows);
  if (seen === undefined) tellUnchecked(probe, "order", "all rows seen have the same time, or no time");
  else if (seen === route.order || route.order === "none")
    tellHeed(probe, "order", `rows come ${orderText(seen)}`);
  else {
    tellHeed(probe, "order", `rows come ${orderText(seen)}, but the profile says ${route.order}`, {
      kind: "order",
      at: "order",
      hint:
        route.rpc !== undefined
          ? "Rows over RPC must come in the order of their time. Look for a request field that sets the order, and put it under `parameters.fixed`; or correct ts_event."
          : seen === "none"
            ? "If ts_event comes from the right field, write `order: none`."
            : `Write \`order: ${seen}\`, or look up the parameter that sets the order.`,
    });
  }
  const source = map.columns.seq;
  if (source?.kind !== "field") return;
  const seqs = rows.flatMap(({ node }) => scalarText(nodeAt(node, source.path)) ?? []);
  if (!isBySeq(rows, source.path, seen)) {
    findings.push({
      kind: "order",
      key: `${key}.columns.seq`,
      message: "rows with the same time are not in the order of this field",
      hint: "Use the field that the gateway sorts by; if there is none, write `seq: derived`.",
    });
  }
  const twice = seqs.find((seq, at) => seqs.indexOf(seq) !== at);
  if (twice === undefined) return;
  findings.push({
    kind: "same_seq",
    key: `${key}.columns.seq`,
    message: `two rows have ${shortText(twice)}, but seq must be unique in a table`,
    hint: "Use another field; if the gateway does not number rows, write `seq: derived`.",
  });
}

/** Whether rows with the same time are in the order of their numbers; true without numbers or an order. */
function isBySeq(
  rows: readonly SampleRow[],
  path: readonly string[],
  order: ReturnType<typeof orderOf>,
): boolean {
  if (order !== "ascending" && order !== "descending") return true;
  const numbers = rows.map(({ node, ts }) => ({ ts, seq: scalarText(nodeAt(node, path)) ?? "" }));
  if (!numbers.every(({ seq }) => /^\d+$/.test(seq))) return true;
  const pairs = numbers.slice(1).map((row, at) => ({ before: numbers[at]!, row }));
  const ties = pairs.filter(({ before, row }) => before.ts === row.ts);
  const rises = ({ before, row }: (typeof pairs)[number]) => BigInt(before.seq) <= BigInt(row.seq);
  return ties.every((pair) => rises(pair) === (order === "ascending") || pair.before.seq === pair.row.seq);
}

function orderText(order: "ascending" | "descending" | "none"): string {
  return order === "none" ? "in no order" : `in ${order} order of time`;
}

/** Checks that the same request returns the same rows. */
async function checkAgain(probe: TableProbe, rows: readonly SampleRow[]): Promise<void> {
  const what = "repeated request";
  const again = await askRows(probe, {});
  const isSame =
    rows.length === again.rows.length &&
    rows.every(({ node }, at) => node.text === again.rows[at]!.node.text);
  if (isSame) {
    tellHeed(probe, what, "the same rows in the same order");
    return;
  }
  const gone = missingFrom(settled(rows), again.rows).length;
  if (gone > 0) {
    tellHeed(probe, what, `${countText(gone, "row")} of ${rows.length} were missing`, {
      kind: "unsteady",
      at: "path",
      hint: "The gateway answers the same request differently. Check a finished run; if this one is finished, ask the operator.",
    });
    return;
  }
  const isOrdered = probe.map.ties === "arrival" && probe.map.columns.seq?.kind === "derived";
  const wrong = {
    kind: "unsteady",
    at: "ties",
    hint: "`ties: arrival` needs the same order each time: write `ties: bytes`.",
  } as const;
  tellHeed(
    probe,
    what,
    "the same rows, but rows with the same time in another order",
    isOrdered ? wrong : undefined,
  );
}
