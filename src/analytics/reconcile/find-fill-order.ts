import type { FillOrder } from "../trades/fill-columns.ts";
import type { BooksSource } from "./books-source.ts";
import { type BooksOptions, checkBooks } from "./check-books.ts";

/**
 * The order of a run's fills in which its books balance, or come closest to it. Null if unknown because of missing
 * rows, or because no fills share an instant, so that all orders are the same.
 */
export async function findFillOrder(
  source: BooksSource,
  { instruments }: Pick<BooksOptions, "instruments">,
): Promise<FillOrder | null> {
  if (source.lacking("fills") !== null) return null;
  await source.showOnly("fills", source.run);
  const shared = await source.connection.runAndReadAll(
    "SELECT 1 FROM fills GROUP BY ts_event HAVING count(*) > 1 LIMIT 1",
  );
  if (shared.currentRowCount === 0) return null;
  const options = { instruments, accounting: "auto", order: "auto", tolerance: null } as const;
  return (await checkBooks(source, options)).order;
}
