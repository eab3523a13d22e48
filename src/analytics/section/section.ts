import type { DuckDBConnection } from "@duckdb/node-api";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import type { ExactTypes } from "../../model/profile/exact-types.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import type { Figure } from "../figure.ts";
import type { BarSource } from "../instruments/instrument.ts";
import type { RunViews } from "../run-views.ts";
import type { RunTrades } from "../trades/run-trades.ts";
import type { MetricsOptions } from "./metrics-options.ts";

/** A run that is the only one in the views. */
export interface MeasuredRun {
  readonly run: RunRef;
  readonly manifest: Manifest;
  readonly views: RunViews;
  readonly connection: DuckDBConnection;
  readonly exactTypes: (table: TableName) => ExactTypes;
  readonly options: MetricsOptions;
  /** The bars that it is compared with; null if that is no symbol. */
  readonly benchmarkBars: BarSource | null;
  /** Its fills as trades, read once however often they are asked for. Throws what `readRunTrades` throws. */
  trades(): Promise<RunTrades>;
}

/** Figures of a part of something: one drawdown, one month, the trades of one symbol. */
export interface FigurePart {
  /** The kind of part: `rank`, `month`, `symbol`. */
  readonly by: string;
  readonly key: string;
  readonly figures: Readonly<Record<string, Figure>>;
}

/** Figures of one portfolio of an account, in one currency: nothing is added over any of these. */
export interface FigureGroup {
  readonly account: string;
  readonly portfolio: string;
  readonly currency: string;
  readonly figures: Readonly<Record<string, Figure>>;
  readonly parts: readonly FigurePart[];
}

/** A section's figures and notes for one run. */
export interface SectionFigures {
  readonly groups: readonly FigureGroup[];
  /** Notes about it, each a sentence. */
  readonly notes: readonly string[];
}

/** Thrown by a section without data, with the reason to show instead; other sections remain. */
export class NothingToSay extends Error {}

/** The tables that a section reads. */
export function tablesOf(section: Section, options: MetricsOptions): readonly TableName[] {
  return [...section.tables, ...(section.alsoReads?.(options) ?? [])];
}

/** One subject of figures. A new one is an entry of the list in `sections.ts`. */
export interface Section {
  readonly name: string;
  readonly title: string;
  /** Tables that it reads; without the first there is nothing to say. */
  readonly tables: readonly [TableName, ...TableName[]];
  /** Further tables that it reads with these options. */
  alsoReads?(options: MetricsOptions): readonly TableName[];
  /** Whether the options ask for it. */
  isWanted(options: MetricsOptions): boolean;
  /** The conventions of all its figures, as a heading. */
  conventions(options: MetricsOptions): string;
  read(run: MeasuredRun): Promise<SectionFigures>;
}
