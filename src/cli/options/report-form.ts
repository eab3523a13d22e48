import type { Painter } from "../output/painter.ts";

/** The form of reports on runs. */
export interface ReportForm {
  readonly paint: Painter;
  /** Width of the terminal; null without one. */
  readonly columns: number | null;
  /** Show tables of runs without trouble, too. */
  readonly withTables: boolean;
  /** Width of the column with names of runs. */
  readonly nameColumns: number;
}
