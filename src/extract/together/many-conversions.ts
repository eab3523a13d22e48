import type { Conversion, Converted, SegmentConverter } from "../../archive/convert/convert-segments.ts";
import { convertTogether, mayConvertTogether } from "../../archive/convert/convert-together.ts";
import { duckDBConverter } from "../../archive/convert/duckdb-form.ts";
import type { JobDuckDB, JobMeans } from "../../duckdb/job-duckdb.ts";
import { RunvaultError } from "../../model/error.ts";
import { Gathering } from "./gathering.ts";

/** A conversion with what its run's job converts with. */
interface Asked {
  readonly conversion: Conversion;
  readonly means: JobMeans;
}

/** Rows of a conversion that is worth waiting for others: above, what a statement costs is little beside its rows. */
const smallRows = 50_000;
/** Rows of a group, which DuckDB holds in memory. */
const mostRows = 300_000;
/** What a conversion weighs in rows however few it has, so that a group is of so many runs and tables at most. */
const leastWeight = mostRows / (24 * 8);

const rowsOf = ({ segments }: Conversion) => segments.reduce((sum, { rows }) => sum + rows, 0);

/**
 * Conversions of many runs in one DuckDB, one statement at a time. Small ones of several runs wait for each other, and are
 * made together, table by table; one that is not as the others is made by itself.
 */
export class ManyConversions {
  readonly #duckdb: JobDuckDB;
  readonly #signal: AbortSignal;
  readonly #small: Gathering<Asked, Converted | undefined>;

  /** `pauseMs`: how long small ones wait for more. */
  constructor(duckdb: JobDuckDB, pauseMs: () => number, signal: AbortSignal) {
    this.#duckdb = duckdb;
    this.#signal = signal;
    this.#small = new Gathering((asked) => this.#together(asked), {
      most: mostRows,
      weightOf: ({ conversion }) => Math.max(rowsOf(conversion), leastWeight),
      pauseMs,
    });
  }

  /** Nobody else may be coming by now. */
  hurry(): void {
    this.#small.hurry();
  }

  /** The converter of one run, whose signal ends its own conversions alone. */
  of(means: JobMeans, signal: AbortSignal): SegmentConverter {
    return async (conversion) => {
      const converted =
        rowsOf(conversion) > smallRows ? undefined : await this.#small.join({ conversion, means }, signal);
      return converted ?? (await this.#duckdb.inTurn(means, signal, duckDBConverting(conversion)));
    };
  }

  async #together(asked: readonly Asked[]): Promise<(() => Converted | undefined)[]> {
    const results = new Map<Conversion, Converted | undefined>();
    for (const group of groupsOf(asked)) {
      const conversions = group.map(({ conversion }) => conversion);
      // alone it is no dearer by itself, and each row is read but once
      if (conversions.length === 1) continue;
      try {
        const { means } = group[0]!;
        const converted = await this.#duckdb.inTurn(means, this.#signal, ({ connection }) =>
          convertTogether(connection, conversions),
        );
        for (const [index, conversion] of conversions.entries()) results.set(conversion, converted[index]);
      } catch (thrown) {
        this.#signal.throwIfAborted();
        // whose fault it is shows where each is made by itself
        if (!(thrown instanceof RunvaultError)) throw thrown;
      }
    }
    return asked.map(
      ({ conversion }) =>
        () =>
          results.get(conversion),
    );
  }
}

/** Conversions that may be made together, each of a run of its own or not: a file is one's own all the same. */
function groupsOf(asked: readonly Asked[]): Asked[][] {
  const groups: Asked[][] = [];
  for (const one of asked) {
    const group = groups.find(([first]) => mayConvertTogether(first!.conversion, one.conversion));
    if (group === undefined) groups.push([one]);
    else group.push(one);
  }
  return groups;
}

function duckDBConverting(conversion: Conversion) {
  return ({ connection }: { connection: Parameters<typeof duckDBConverter>[0] }) =>
    duckDBConverter(connection)(conversion);
}
