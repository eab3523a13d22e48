import type { ErrorPlace } from "../../../model/error.ts";
import { rowsMissing } from "../../../model/rows-missing.ts";
import type { RowRequest } from "../../../model/source.ts";
import type { Pages } from "../../profile/profile.ts";
import { type PageTold, totalOf } from "./next-page.ts";

/** What an answer's total is compared with, and where the result goes. */
export interface Announcement {
  readonly pages: Pages;
  readonly place: ErrorPlace;
  /** Enough rows; further ones are neither read nor missed. */
  readonly wanted: number | undefined;
  /** The request has no bounds. */
  readonly isOpen: boolean;
  /** Whether a total counts the requested rows, and not all of the run. */
  readonly isOfThese: (total: bigint) => Promise<boolean>;
  /** Judges totals instead of throwing: see RowRequest. */
  readonly onTotal: RowRequest["onTotal"];
  /** Takes notable facts that are not errors. */
  readonly tell: (text: string) => void;
}

/**
 * The number of rows that the pages of one answer announce. The last page's total counts, because rows may come
 * meanwhile. It never ends the pages: a total that is too low would hide the rest.
 */
export class AnnouncedRows {
  readonly #answer: Announcement;
  #total: bigint | undefined;

  constructor(answer: Announcement) {
    this.#answer = answer;
  }

  /** The total by this page, or by the last one that has any: some send it only with the first page. */
  see(page: PageTold): bigint | undefined {
    const { pages, place, isOpen, onTotal } = this.#answer;
    this.#total = totalOf(pages, page, place, this.#total);
    if (isOpen && this.#total !== undefined) onTotal?.(this.#total);
    return this.#total;
  }

  /**
   * Reports pages that ended with fewer rows than announced, or throws `rows_missing` if there is no `onTotal`. A total
   * below the rows received is ignored with a notice; one that ignores bounds is not compared for bounded requests.
   */
  async requireCame(rows: number): Promise<undefined> {
    const { place, wanted, isOfThese, onTotal, tell } = this.#answer;
    const total = this.#total;
    if (total === undefined || total === BigInt(rows) || wanted !== undefined) return undefined;
    if (total < BigInt(rows)) {
      tell(`${place.table} has more rows than its pages announce: their total is ignored`);
      return undefined;
    }
    if (!(await isOfThese(total))) return undefined;
    if (onTotal === undefined) throw rowsMissing(total, rows, place);
    onTotal(total, rows);
    return undefined;
  }
}
