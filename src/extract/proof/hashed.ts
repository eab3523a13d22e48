import { RunvaultError } from "../../model/error.ts";
import { fieldsFingerprint, namesFields } from "../../model/profile/schema-fingerprint.ts";
import type { Table } from "../../model/profile/table.ts";
import type { HistorySource, RunRef, TableFacts } from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import type { RowHash } from "../../row/row-hash.ts";
import { routeOf } from "../plan/route.ts";

/** The gateway's statement about a table's rows within bounds; without a hash, why none can be compared. */
export type GatewayHash = { readonly hash: RowHash } | { readonly hash: null; readonly why: string };

/** The gateway's row hash of a table within bounds, for comparison with ours, in one request. */
export async function comparableHash(
  source: Pick<HistorySource, "facts" | "traits">,
  run: RunRef,
  table: Table,
  bounds: TimeBounds,
  signal: AbortSignal,
): Promise<GatewayHash> {
  if (routeOf(source, table).numbers !== "given")
    return {
      hash: null,
      why: "runvault numbers these rows itself, so the gateway's row checksum is of different rows",
    };
  const facts = await source.facts(run, bounds, signal, { withHash: true, table: table.name });
  return hashIn(table, facts?.get(table.name));
}

/**
 * The same in as many requests as it takes. A window that the gateway refuses as too large, or does not finish in time,
 * is requested in halves: the hashes of adjacent windows add up.
 */
export async function gatewayHash(
  source: Pick<HistorySource, "facts" | "traits">,
  run: RunRef,
  table: Table,
  bounds: TimeBounds,
  signal: AbortSignal,
): Promise<GatewayHash> {
  try {
    return await comparableHash(source, run, table, bounds, signal);
  } catch (thrown) {
    if (!(thrown instanceof RunvaultError) || !tooMuch.has(thrown.code)) throw thrown;
    const middle = middleOf((await source.facts(run, bounds, signal))?.get(table.name));
    if (middle === undefined) throw thrown;
    const early = await gatewayHash(source, run, table, { ...bounds, to: middle }, signal);
    if (early.hash === null) return early;
    const late = await gatewayHash(source, run, table, { ...bounds, from: middle }, signal);
    if (late.hash === null) return late;
    return { hash: { rows: early.hash.rows + late.hash.rows, hash: early.hash.hash + late.hash.hash } };
  }
}

/** Codes of a gateway whose scan took too long. */
const tooMuch: ReadonlySet<string> = new Set(["limit_exceeded", "timeout"]);

/** A time between the first row and the last, so that both halves have rows; undefined if there is none. */
function middleOf(facts: TableFacts | undefined): bigint | undefined {
  if (facts?.first === undefined || facts.last === undefined || facts.first === facts.last) return undefined;
  return facts.first + (facts.last - facts.first + 1n) / 2n;
}

function hashIn(table: Table, facts: TableFacts | undefined): GatewayHash {
  if (facts === undefined) return { hash: null, why: `the gateway has no storage facts for ${table.name}` };
  const { rows, rowHash, schemaFingerprint } = facts;
  if (rowHash === undefined) return { hash: null, why: "the gateway gives no row checksum" };
  if (schemaFingerprint === fieldsFingerprint(table)) return { hash: { rows, hash: rowHash } };
  const why = namesFields(schemaFingerprint)
    ? "the gateway's row checksum covers different fields than runvault's"
    : "the gateway does not say which fields its row checksum covers";
  return { hash: null, why: `${why}, so it cannot be compared` };
}
