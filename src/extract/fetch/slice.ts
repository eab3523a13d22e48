import type { Segment } from "../../archive/manifest/manifest.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type { RetryPolicy } from "../../model/retry/retry-policy.ts";
import type { AskedRun, HistorySource } from "../../model/source.ts";
import type { Nanoseconds } from "../../model/time.ts";
import type { Window } from "../plan/held-window.ts";
import type { Came } from "../plan/row-key.ts";
import type { SeenSource } from "../proof/seen-source.ts";
import type { BufferPool } from "./buffer-pool.ts";

/** A window of one table of one run: the unit of fetch and retry. */
export interface Slice {
  readonly run: AskedRun;
  readonly table: Table;
  readonly bucket: string;
  readonly from: Nanoseconds;
  readonly to: Nanoseconds;
  /** Rows the gateway says the window holds; undefined where it says nothing. */
  readonly expected: number | undefined;
  /** True where that number is the last word: the run is finished. */
  readonly isFinal?: boolean;
  /** Wider bounds to ask within, so that one answer shows as well that nothing lies around the slice. */
  readonly around?: Window | undefined;
}

/** A piece of a slice whose rows are whole. */
export type SegmentDraft = Omit<Segment, "file" | "storedBytes" | "sha256">;

export interface SliceWork {
  readonly source: HistorySource;
  readonly pool: BufferPool;
  readonly segmentBytes: number;
  readonly mostBytes: number;
  /** For answers that were cut: attempts count as long as none brings a new timestamp. */
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
  /** Rows in any bounds by the gateway's facts; undefined where it has none, or they ignore bounds. */
  readonly countRows: ((from: Nanoseconds, to: Nanoseconds) => Promise<number>) | undefined;
  readonly onRows: (rows: number, bytes: number) => void;
  /** Takes note of every answer that ended whole. */
  readonly seen: SeenSource;
  /** Hears of rows that came and that the slice fails without. */
  readonly onLost?: ((table: TableName, came: Came) => void) | undefined;
}

/** The events of fetching a slice: its segments in order, and finally its result. */
export type SliceEvent = FetchedSegment | SliceRestart | SliceEnd;

/** A segment whose text its taker gives back: until then the buffer under it is not filled again. */
export interface FetchedSegment {
  readonly kind: "segment";
  readonly draft: SegmentDraft;
  readonly text: Buffer;
  readonly release: () => void;
}

/** The slice starts over: what came of it before is to be dropped. */
export interface SliceRestart {
  readonly kind: "restart";
}

/** All of the slice is here. */
export interface SliceEnd {
  readonly kind: "end";
  readonly rows: number;
  /** Bytes that the rows' segments hold. */
  readonly bytes: number;
  /** The last timestamp's rows where nothing that was answered shows them to be all of it; null where something does. */
  readonly openEnd: OpenEnd | null;
  /** True where a single answer, within the bounds around the slice, brought its rows and no others. */
  readonly isAlone: boolean;
  /** First and last time of all rows that came, where some lay beyond bounds that could not be asked for. */
  readonly seen: { readonly first: Nanoseconds; readonly last: Nanoseconds } | undefined;
}

/** Rows that a cap may have cut off inside their timestamp, which the slice ends with. */
export interface OpenEnd extends Window {
  readonly rows: number;
  readonly bytes: number;
  /** True if an answer had them after others: enough if no answer of the table ever stopped short. */
  readonly isHeld: boolean;
  /** Earlier timestamps, ever further back, to ask from. */
  readonly ahead: readonly Nanoseconds[];
  /** These are all rows of the answer: without an upper bound to ask with, a cap may as well have taken the first. */
  readonly isAll?: true | undefined;
}
