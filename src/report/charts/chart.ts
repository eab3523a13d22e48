import type { TopLevelSpec } from "vega-lite";

/** One chart of the report, drawn: an SVG for wide pages, one for phones, and its figures as a table. */
export interface Chart {
  /** Unique among the charts of a page: `equity`, `returns`. Letters, digits and hyphens. */
  readonly id: string;
  readonly title: string;
  /** One or two sentences on what is drawn and left out. Plain text. */
  readonly caption: string;
  /** The vega-lite spec at the wide size, with inline data and the light theme's colours. It draws anywhere. */
  readonly spec: TopLevelSpec;
  /** An `<svg>` element of 980 px. Its colours are the page's CSS variables, and it has no ids. */
  readonly wide: string;
  /** The same at 330 px, drawn again and not scaled: its text is as large. */
  readonly narrow: string;
  /** The figures behind the drawing, as text for people. */
  readonly numbers: ChartNumbers;
}

export interface ChartNumbers {
  readonly columns: readonly string[];
  /** As many cells per row as there are columns; about sixty rows at most. */
  readonly rows: readonly (readonly string[])[];
  /** What was left out: `60 of 45,031 points`; empty for nothing. */
  readonly note: string;
}

/** Why a chart was not drawn: `no fills`. */
export interface NoChart {
  readonly id: string;
  readonly title: string;
  readonly reason: string;
}
