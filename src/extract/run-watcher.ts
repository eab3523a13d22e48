import type { RunRef } from "../model/source.ts";

/** A bucket is to be converted, or its conversion has ended. `planned`: rows pass by being converted, and so does this one. */
export type ConversionChange = "planned" | "asked" | "done";

/** Hears how far a job over many runs is; all of it is for people. */
export interface RunWatcher {
  /** Work on a run begins, the `number`-th of `of`, which is alone unless others are under way beside it. */
  readonly run?: (run: RunRef, number: number, of: number, isAlone?: boolean) => void;
  /** Work on a run has ended, however it went. */
  readonly ended?: () => void;
  /** Rows of this run that will pass in all, as far as is known. */
  readonly expect?: (rows: number) => void;
  /** Rows as they pass. */
  readonly rows?: (rows: number, bytes: number) => void;
  readonly conversion?: (change: ConversionChange) => void;
  /** Notes for people about things that are not errors. */
  readonly note?: (text: string) => void;
  /** The same of a run, for the log. */
  readonly log?: (run: RunRef, text: string) => void;
}
