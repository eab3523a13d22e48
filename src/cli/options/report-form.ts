import type { Painter } from "../output/painter.ts";

/** How reports of runs look. */
export interface ReportForm {
  readonly paint: Painter;
  /** Characters a line of the terminal; null where there is none. */
  readonly columns: number | null;
  /** Tables of runs with which nothing is wrong as well. */
  readonly withTables: boolean;
  /** Room for names of runs, so that lines below each other line up. */
  readonly nameColumns: number;
}
