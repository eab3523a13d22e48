import type { Conversion, Converted, SegmentConverter } from "../../archive/convert/convert-segments.ts";
import { RunvaultError } from "../../model/error.ts";
import type { TableName } from "../../model/profile/table.ts";

/**
 * Converts lines that may end with `extra`. Looking for it takes 10 % longer, so large conversions first assume that
 * there is none. If one is found, they are repeated, and later ones of the table look for it from the start.
 */
export class ExtraConverter {
  readonly #toParquet: SegmentConverter;
  /** Tables with lines that end with `extra`. */
  readonly #seen = new Set<TableName>();

  readonly #leastLines: number;

  /** From `leastLines` on, a conversion first assumes that there is no `extra`. */
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
      // to a reader that does not look for it, `extra` is a field that the contract does not know
      if (plain !== undefined && plain.drift.length === 0) return plain;
      this.#seen.add(name);
    }
    return await this.#toParquet(conversion);
  }
}
