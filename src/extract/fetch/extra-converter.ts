import type { Conversion, Converted, SegmentConverter } from "../../archive/convert/convert-segments.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";

/**
 * Converts lines that may end with `extra`. To look for it costs a tenth more, so that many lines are first taken for
 * lines without; what shows otherwise has them converted again, and those of the table after them looked into at once.
 */
export class ExtraConverter {
  readonly #toParquet: SegmentConverter;
  /** Tables of which lines were seen to end with `extra`. */
  readonly #seen = new Set<TableName>();

  readonly #leastLines: number;

  /** `leastLines` are worth the try. */
  constructor(toParquet: SegmentConverter, leastLines = 100_000) {
    this.#toParquet = toParquet;
    this.#leastLines = leastLines;
  }

  /** Throws as the converter does. */
  async convert(conversion: Conversion): Promise<Converted> {
    const { name } = conversion.table;
    const lines = conversion.segments.reduce((sum, segment) => sum + segment.rows, 0);
    if (conversion.extra === true && lines >= this.#leastLines && !this.#seen.has(name)) {
      const plain = await this.#toParquet({ ...conversion, extra: false }).catch((error: unknown) => {
        if (error instanceof RunvaultError && error.code === "malformed_row") return undefined;
        throw error;
      });
      // to a reader that does not look for it, the member is a field that the contract does not know
      if (plain !== undefined && plain.drift.length === 0) return plain;
      this.#seen.add(name);
    }
    return await this.#toParquet(conversion);
  }
}
