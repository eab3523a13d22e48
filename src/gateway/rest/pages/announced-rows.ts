import type { ErrorPlace } from "../../../model/error.ts";
import { rowsMissing } from "../../../model/rows-missing.ts";
import type { RowRequest } from "../../../model/source.ts";
import type { Pages } from "../../profile/profile.ts";
import { type PageTold, totalOf } from "./next-page.ts";

/** What an answer's total is compared with, and who hears of it. */
export interface Announcement {
  readonly pages: Pages;
  readonly place: ErrorPlace;
  /** Rows that are enough; what comes beyond them is not looked at, nor missed. */
  readonly wanted: number | undefined;
  /** Nothing bounds what is asked for. */
  readonly isOpen: boolean;
  /** Whether a total is of the rows asked for, and not of all that the run has. */
  readonly isOfThese: (total: bigint) => Promise<boolean>;
  /** Judges totals, in place of an error: see RowRequest. */
  readonly onTotal: RowRequest["onTotal"];
  /** Takes what is remarkable of the gateway and no error. */
  readonly tell: (text: string) => void;
}

/**
 * How many rows the pages of one answer say that they are. The last page's word counts, for rows may come meanwhile. It
 * never ends the pages: a total that is too low would hide the rest.
 */
export class AnnouncedRows {
  readonly #answer: Announcement;
  #total: bigint | undefined;

  constructor(answer: Announcement) {
    this.#answer = answer;
  }

  /** Gives the total by this page, or by the last one that has any: some send it with the first page alone. */
  see(page: PageTold): bigint | undefined {
    const { pages, place, isOpen, onTotal } = this.#answer;
    this.#total = totalOf(pages, page, place, this.#total);
    if (isOpen && this.#total !== undefined) onTotal?.(this.#total);
    return this.#total;
  }

  /**
   * Tells where the pages ended with fewer rows than they announce, or throws `rows_missing` where nobody hears of it. A
   * total below what came is not believed, with a notice; one that ignores bounds is not compared where there are any.
   */
  async requireCame(rows: number): Promise<undefined> {
    const { place, wanted, isOfThese, onTotal, tell } = this.#answer;
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
