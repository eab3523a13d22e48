import { type ErrorPlace, RunvaultError } from "../../../model/error.ts";
import { rowsMissing } from "../../../model/rows-missing.ts";
import type { Pages } from "../../profile/profile.ts";
import { countOf } from "../field-values.ts";
import { announcedBy } from "./next-page.ts";
import type { OpenPage, PageWalk } from "./page-walk.ts";

/**
 * How many rows the pages of one answer say that they are. The last page's word counts, for rows may come meanwhile. It
 * never ends the pages: a total that is too low would hide the rest.
 */
export class AnnouncedRows {
  readonly #walk: PageWalk;
  #total: bigint | undefined;

  constructor(walk: PageWalk) {
    this.#walk = walk;
  }

  /** Gives the total by this page, or by the last one that has any: some send it with the first page alone. */
  see(page: OpenPage): bigint | undefined {
    const { pages, place, isOpen, onTotal } = this.#walk;
    this.#total = totalOf(pages, page, place, this.#total);
    if (isOpen && this.#total !== undefined) onTotal?.(this.#total);
    return this.#total;
  }

  /**
   * Tells where the pages ended with fewer rows than they announce, or throws `rows_missing` where nobody hears of it. A
   * total below what came is not believed, with a notice; one that ignores bounds is not compared where there are any.
   */
  async requireCame(rows: number): Promise<undefined> {
    const { place, wanted, isOfThese, onTotal, tell } = this.#walk;
    const total = this.#total;
    if (total === undefined || total === BigInt(rows) || wanted !== undefined) return undefined;
    if (total < BigInt(rows)) {
      tell(`${place.table} has more rows than its pages announce: their total is not believed`);
      return undefined;
    }
    if (!(await isOfThese(total))) return undefined;
    if (onTotal === undefined) throw rowsMissing(total, rows, place);
    onTotal(total, rows);
    return undefined;
  }
}

/** The number of all rows by a page; where it has none, `before`. Undefined where pages announce nothing. */
export function totalOf(
  pages: Pages,
  page: OpenPage,
  place: ErrorPlace,
  before?: bigint,
): bigint | undefined {
  if (pages.by === "none" || pages.total === undefined) return undefined;
  const text = announcedBy(pages, { headers: page.headers, value: (i) => page.rows.value(i) }, place);
  const total = text === undefined ? before : countOf(text);
  if (total !== undefined) return total;
  const where = "body" in pages.total ? pages.total.body.join(".") : `the header ${pages.total.header}`;
  throw new RunvaultError(
    "not_a_gateway",
    `the answer is not as the profile says: ${where} has no number of rows`,
    { place, status: 200, hint: "Correct the profile's pages, or leave the total out." },
  );
}
