import type { OfRun } from "../chart-data.ts";
import type { Colour, Frame } from "./frame.ts";
import type { LegendEntry } from "./legend.ts";

const colours = ["run-1", "run-2", "run-3", "run-4", "run-5", "run-6"] as const;
const shapes = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"] as const;

/** The look of a run, or of one of several factors. */
export interface RunLook {
  readonly colour: Colour;
  /** None for the first six; later ones have the same colours, dashed. */
  readonly dash: readonly number[];
  /** The shape of its marks, so that nobody depends on colours. */
  readonly shape: (typeof shapes)[number];
}

/** The look of a number from 1: six colours, then the same ones dashed. */
export function lookOf(number: number): RunLook {
  const place = (number - 1) % colours.length;
  const round = Math.floor((number - 1) / colours.length);
  return { colour: colours[place]!, dash: round === 0 ? [] : [4 + 2 * round, 3], shape: shapes[place]! };
}

/** The accent for the only run of a chart, otherwise the look of its number. */
export function runLook({ number }: OfRun, isOne: boolean): RunLook {
  return isOne ? { colour: "accent", dash: [], shape: "circle" } : lookOf(number);
}

/** The runs by name if there is room for names; nothing for a single run. */
export function runEntries(
  runs: readonly OfRun[],
  isOne: boolean,
  { isNarrow }: Frame,
  mark: "line" | "square" | "own" = "square",
): LegendEntry[] {
  if (isOne) return [];
  return runs.map((run) => {
    const { colour, dash, shape } = runLook(run, isOne);
    const label = isNarrow ? run.label : `${run.label} ${run.name}`;
    return { label, colour, dash, shape: mark === "own" ? shape : mark };
  });
}

/** Prefix for a run's part of a sentence or heading; empty for a single run. */
export function runPrefix({ label }: OfRun, isOne: boolean): string {
  return isOne ? "" : `${label} `;
}

/** Names the runs without data for a chart; empty if all are drawn. */
export function noDataSentence(all: readonly OfRun[], drawn: readonly OfRun[]): string {
  const missing = all.filter(({ number }) => !drawn.some((run) => run.number === number));
  return missing.length === 0 ? "" : `No data for ${missing.map(({ label }) => label).join(", ")}.`;
}
