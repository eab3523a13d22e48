import type { Archive } from "../../archive/archive.ts";
import { literal } from "../../duckdb/sql.ts";
import { RunvaultError } from "../../model/error.ts";
import { exactType } from "../../model/profile/exact-types.ts";
import type { RunRef } from "../../model/source.ts";
import type { InstrumentsFile } from "../instruments/read-instruments.ts";
import { openViews } from "../query/open-views.ts";
import type { AccountKey } from "../reconcile/account-key.ts";
import { keySql, type MoveColumns, readMoves } from "../reconcile/account-rows.ts";
import { manifestOf, requireProvenBooks, whyLacking } from "../reconcile/proven-tables.ts";
import type { Shortfall } from "../shortfall.ts";
import { createMacros } from "../sql/macros.ts";
import { type RunTrades, readRunTrades } from "../trades/run-trades.ts";

/** The last equity point of a session. */
export interface Close {
  /** The day that the session is named after. */
  readonly day: string;
  /** UNIX nanoseconds. */
  readonly ts: bigint;
  /** In units of the series' `scale`. */
  readonly equity: bigint;
}

/** The equity of an account, portfolio and currency: one point per session, by day. */
export interface EquitySeries extends AccountKey {
  readonly closes: readonly Close[];
}

/** The data of a run for the comparison. */
export interface RunSide {
  readonly run: RunRef;
  /** Null if the archive has no fills of it. */
  readonly trades: RunTrades | null;
  readonly series: readonly EquitySeries[];
  /** Decimals of the series' amounts. */
  readonly scale: number;
  /** Money that moved, by the place in `series`; null if the archive has no events of it. */
  readonly moves: MoveColumns | null;
  /** Why something is missing. */
  readonly lacking: {
    readonly fills: string | null;
    readonly equity: string | null;
    readonly events: string | null;
  };
  readonly shortfall: Shortfall;
}

export interface SideOptions {
  readonly instruments: InstrumentsFile | null;
  readonly session: string;
  readonly allowIncomplete: boolean;
  readonly memoryLimitMb: number;
  readonly signal?: AbortSignal | undefined;
}

const comparedTables = ["fills", "bars", "equity", "events"] as const;

/** Reads a run's data for the comparison. Throws like `reconcile` for a run without anything proven. */
export async function readSide(archive: Archive, run: RunRef, options: SideOptions): Promise<RunSide> {
  const { allowIncomplete, memoryLimitMb, signal, session } = options;
  const manifest = await manifestOf(archive, run);
  if (!allowIncomplete) requireProvenBooks(manifest, comparedTables);
  await using views = await openViews(archive, {
    readManifests: () => Promise.resolve([manifest]),
    allowIncomplete,
    memoryLimitMb,
    threads: 1,
    signal,
  });
  const { connection } = views;
  try {
    await views.show(comparedTables, signal);
    await createMacros(connection, ["session_points"]);
    for (const table of comparedTables) await views.showOnly(table, run);
    const lacking = {
      fills: whyLacking(manifest, "fills"),
      equity: whyLacking(manifest, "equity"),
      events: whyLacking(manifest, "events"),
    };
    const { scale } = exactType(archive.exactTypes("equity"), "equity");
    const found = await connection.runAndReadAll(
      "SELECT DISTINCT account, portfolio, currency FROM equity WHERE equity IS NOT NULL ORDER BY ALL",
    );
    const keys = found.getRows().map(
      ([account, portfolio, currency]): AccountKey => ({
        account: String(account),
        portfolio: String(portfolio),
        currency: String(currency),
      }),
    );
    const closes = keys.map((): Close[] => []);
    const rows = await connection.runAndReadAll(`
      SELECT key, CAST(day AS VARCHAR), CAST(epoch_ns(max(ts_event)) AS VARCHAR),
             CAST(max_by(equity, (ts_event, seq)) AS VARCHAR)
      FROM (
        SELECT ${keySql(keys)} AS key, session_day(ts_event, ${literal(session)}) AS day, ts_event, seq, equity
        FROM equity WHERE equity IS NOT NULL
      ) GROUP BY key, day ORDER BY key, day`);
    for (const [key, day, ts, equity] of rows.getRows()) {
      const value = BigInt(String(equity).replace(".", ""));
      closes[Number(key)]!.push({ day: String(day), ts: BigInt(String(ts)), equity: value });
    }
    const moves =
      lacking.events === null ? await readMoves(connection, archive.exactTypes("events"), keys) : null;
    const trades =
      lacking.fills === null
        ? await readRunTrades(views, archive.exactTypes, run, {
            instruments: keys.length > 0 ? options.instruments : (options.instruments ?? withoutCurrency),
            withOrders: true,
          })
        : null;
    const series = keys.map((key, index) => ({ ...key, closes: closes[index]! }));
    return { run, trades, series, scale, moves, lacking, shortfall: views.shortfall(comparedTables) };
  } catch (error) {
    if (error instanceof RunvaultError) throw error.at({ instance: run.instanceId, run: run.runId });
    throw await views.errorOf(error);
  }
}

/** Without equity rows there is no currency for fills. */
const withoutCurrency: InstrumentsFile = {
  file: "",
  entries: [{ symbol: "*", venue: "*", currency: "", multiplier: "1", kind: "linear" }],
};
