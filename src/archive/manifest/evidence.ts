import { z } from "zod";
import { int64Max, int64Min } from "../../model/time.ts";

const bound = z
  .string()
  .regex(/^-?\d{1,19}$/)
  .refine((text) => BigInt.asIntN(64, BigInt(text)) === BigInt(text), "not a time");
const count = z.int().nonnegative();

/** What a gateway told of a window of a table, or brought of it: the least that the window held then. No row is in it. */
export const evidenceSchema = z.strictObject({
  /** told: counted by its facts, over whichever transport; brought: in its answers. */
  by: z.enum(["told", "brought"]),
  /** The window, half-open; the ends of int64 where nothing bounds it. */
  from: bound,
  to: bound,
  rows: count,
  /** `ts_event` of the first row and of the last, where they are known. */
  first: bound.nullable(),
  last: bound.nullable(),
  /** What tells the first row from others of its instant, and the last: its seq, or its row hash where it came without one. */
  firstKey: z.string().optional(),
  lastKey: z.string().optional(),
  /** The row hash of rows that came and are not here any more; null of a count. */
  hash: z.string().nullable(),
  /** The storage version under which that was so; null where there was none. */
  version: z.string().nullable(),
  /** True where an earlier job left it. */
  isOlder: z.literal(true).optional(),
});
export type Evidence = z.infer<typeof evidenceSchema>;

/** What segments of one window say of their rows, which came although the files cannot be read any more. */
export function evidenceOf(
  segments: readonly Pick<Evidence, "from" | "to" | "rows">[],
  version: string | null,
): Evidence {
  const { from, to } = segments[0]!;
  const rows = segments.reduce((sum, segment) => sum + segment.rows, 0);
  return { by: "brought", from, to, rows, first: null, last: null, hash: null, version };
}

/** The window of all that a table holds. */
export const everything = { from: int64Min.toString(), to: int64Max.toString() };
