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
  /** Rows in the window according to the gateway; undefined if it does not say. */
  readonly expected: number | undefined;
  /** True if that number is final because the run is finished. */
  readonly isFinal?: boolean;
  /** Wider bounds to request, so that one answer also shows that there are no rows around the slice. */
  readonly around?: Window | undefined;
}

/** A piece of a slice whose rows are whole. */
export type SegmentDraft = Omit<Segment, "file" | "storedBytes" | "sha256">;

export interface SliceWork {
  readonly source: HistorySource;
  readonly pool: BufferPool;
  readonly segmentBytes: number;
  readonly mostBytes: number;
  /** For truncated answers: attempts are counted until one brings a new timestamp. */
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
  /** The gateway's count of rows within bounds; undefined if it has none, or if counts ignore bounds. */
  readonly countRows: ((from: Nanoseconds, to: Nanoseconds) => Promise<number>) | undefined;
  readonly onRows: (rows: number, bytes: number) => void;
  /** Records every complete answer. */
  readonly seen: SeenSource;
  /** Called with rows that came but are missing from the slice, which then fails. */
  readonly onLost?: ((table: TableName, came: Came) => void) | undefined;
}

/** The events of fetching a slice: its segments in order, and finally its result. */
export type SliceEvent = FetchedSegment | SliceRestart | SliceEnd;

/** A segment. The caller releases its text; until then its buffer is not reused. */
export interface FetchedSegment {
  readonly kind: "segment";
  readonly draft: SegmentDraft;
  readonly text: Buffer;
  readonly release: () => void;
}

/** The slice starts over: drop what it has yielded so far. */
export interface SliceRestart {
  readonly kind: "restart";
}

/** All of the slice is here. */
export interface SliceEnd {
  readonly kind: "end";
  readonly rows: number;
  /** Bytes in the rows' segments. */
  readonly bytes: number;
  /** The last timestamp's rows if no answer shows that they are all; otherwise null. */
  readonly openEnd: OpenEnd | null;
  /** True if a single answer, with the bounds around the slice, had its rows and no others. */
  readonly isAlone: boolean;
  /** First and last time of all rows received, if some were outside bounds that could not be sent. */
  readonly seen: { readonly first: Nanoseconds; readonly last: Nanoseconds } | undefined;
}

/** The rows of the slice's last timestamp, some of which a cap may have cut off. */
export interface OpenEnd extends Window {
  readonly rows: number;
  readonly bytes: number;
  /** True if an answer had them after others, which is enough if no answer of the table ever ended early. */
  readonly isHeld: boolean;
  /** Earlier timestamps, ever further back, to ask from. */
  readonly ahead: readonly Nanoseconds[];
  /** These are all rows of the answer: without an upper bound to request, a cap may also have cut off the first. */
  readonly isAll?: true | undefined;
}
