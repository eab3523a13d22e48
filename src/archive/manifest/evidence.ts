import { z } from "zod";
import { int64Max, int64Min } from "../../model/time.ts";

const bound = z
  .string()
  .regex(/^-?\d{1,19}$/)
  .refine((text) => BigInt.asIntN(64, BigInt(text)) === BigInt(text), "not a time");
const count = z.int().nonnegative();

/** What a gateway reported or sent about a window of a table: the least that the window held then. Contains no rows. */
export const evidenceSchema = z.strictObject({
  /** told: counted by its facts, over any transport; brought: sent in its answers. */
  by: z.enum(["told", "brought"]),
  /** The half-open window; the ends of int64 mean no bound. */
  from: bound,
  to: bound,
  rows: count,
  /** `ts_event` of the first and last row, where known. */
  first: bound.nullable(),
  last: bound.nullable(),
  /** What tells the first row from others of its instant, and the last: its seq, or its row hash where it came without one. */
  firstKey: z.string().optional(),
  lastKey: z.string().optional(),
  /** The row hash of rows that came and are not here any more; null of a count. */
  hash: z.string().nullable(),
  /** The storage version at that time; null if there was none. */
  version: z.string().nullable(),
  /** True if it comes from an earlier job. */
  isOlder: z.literal(true).optional(),
});
export type Evidence = z.infer<typeof evidenceSchema>;

/** Evidence from segments of one window: their rows came, although the files can no longer be read. */
export function evidenceOf(
  segments: readonly Pick<Evidence, "from" | "to" | "rows">[],
  version: string | null,
): Evidence {
  const { from, to } = segments[0]!;
  const rows = segments.reduce((sum, segment) => sum + segment.rows, 0);
  return { by: "brought", from, to, rows, first: null, last: null, hash: null, version };
}

/** The window of an entire table. */
export const everything = { from: int64Min.toString(), to: int64Max.toString() };
