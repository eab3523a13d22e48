import type { OfRun } from "../chart-data.ts";
import { type Drawing, plotWidth } from "./draw-chart.ts";
import type { Frame } from "./frame.ts";
import type { Layer } from "./layer.ts";
import { type LegendEntry, legend } from "./legend.ts";
import { lookOf, type RunLook, runEntries, runLook } from "./run-look.ts";
import type { ValueAxis } from "./value-axis.ts";

/** Most factors that get their own colour, for one run, or their own plot, for several runs. */
const mostFactors = { ofOne: 6, ofSeveral: 4 };

interface Named {
  readonly factor: string;
}

type Run<Factor> = OfRun & { readonly factors: readonly Factor[] };

/** The strongest factors, by the strongest value in any run, in their original order; and how many there are in all. */
export function strongestFactors<Factor extends Named>(
  runs: readonly Run<Factor>[],
  strength: (factor: Factor) => number,
  isOne: boolean,
): { readonly drawn: readonly string[]; readonly all: number } {
  const strengths = new Map<string, number>();
  for (const factor of runs.flatMap(({ factors }) => factors)) {
    strengths.set(factor.factor, Math.max(strengths.get(factor.factor) ?? 0, strength(factor)));
  }
  const strongest = [...strengths]
    .sort(([, a], [, b]) => b - a)
    .slice(0, isOne ? mostFactors.ofOne : mostFactors.ofSeveral)
    .map(([factor]) => factor);
  return { drawn: [...strengths.keys()].filter((factor) => strongest.includes(factor)), all: strengths.size };
}

/** A line of points, and its look. */
export interface FactorLine<Point> {
  readonly points: readonly Point[] & Point[];
  readonly look: RunLook;
}

export interface FactorPanel<Point> {
  readonly entries: readonly LegendEntry[];
  readonly lines: readonly FactorLine<Point>[];
}

/** For one run all factors on one pair of axes, each in its colour; for several runs a plot per factor, a colour per run. */
export function factorPanels<Factor extends Named, Point>(
  runs: readonly Run<Factor>[],
  factors: readonly string[],
  pointsOf: (run: Run<Factor>, factor: Factor, place: number, places: number) => Point[],
  isOne: boolean,
  frame: Frame,
): readonly FactorPanel<Point>[] {
  const find = (run: Run<Factor>, name: string) => run.factors.find(({ factor }) => factor === name);
  if (!isOne) {
    return factors.map((name, index) => ({
      entries: [
        { label: name, shape: "none", colour: "ink" },
        ...(index === 0 ? runEntries(runs, isOne, frame, "own") : []),
      ],
      lines: runs.flatMap((run, place) => {
        const factor = find(run, name);
        return factor === undefined
          ? []
          : [{ points: pointsOf(run, factor, place, runs.length), look: runLook(run, isOne) }];
      }),
    }));
  }
  const [run] = runs;
  const look = (index: number) => (factors.length === 1 ? runLook(run!, true) : lookOf(index + 1));
  return [
    {
      entries: factors.map((label, index) =>
        factors.length === 1
          ? { label, shape: "none", colour: "ink" }
          : { label, shape: look(index).shape, colour: look(index).colour },
      ),
      lines: factors.map((name, index) => ({
        points: pointsOf(run!, find(run!, name)!, index, factors.length),
        look: look(index),
      })),
    },
  ];
}

/**
 * The panels one below the other, each under its legend, with their values on `y`. `layersOf` draws one line; the last
 * panel has the labels of the horizontal axis.
 */
export function drawFactorPanels<Point>(
  panels: readonly FactorPanel<Point>[],
  y: ValueAxis,
  layersOf: (line: FactorLine<Point>, isLast: boolean) => Layer[],
  frame: Frame,
): Drawing {
  const { fontSize, isNarrow } = frame;
  const left = Math.max(isNarrow ? 40 : 52, y.labelWidth + 8);
  const right = isNarrow ? 10 : 16;
  const width = plotWidth(frame, { left, right });
  return {
    ...{ left, right, bottom: fontSize * 2 + 24, between: 10 },
    panels: panels.map(({ entries, lines }, index) => {
      const names = legend(entries, frame, width);
      return {
        height: panels.length > 1 ? 110 : isNarrow ? 160 : 220,
        above: names.height,
        layers: [...lines.flatMap((line) => layersOf(line, index === panels.length - 1)), ...names.layers],
      };
    }),
  };
}

/** The mark of a point with its own text. */
export function factorMark({ shape, colour }: RunLook, { paint }: Frame) {
  const fill = paint(colour);
  return { ...({ type: "point", aria: true, filled: true } as const), shape, fill, size: 44, opacity: 1 };
}
