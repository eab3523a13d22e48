import type { Conversion, Converted, SegmentConverter } from "../../archive/convert/convert-segments.ts";
import { convertTogether, mayConvertTogether } from "../../archive/convert/convert-together.ts";
import { duckDBConverter } from "../../archive/convert/duckdb-form.ts";
import type { JobDuckDB, JobMeans } from "../../duckdb/job-duckdb.ts";
import { RunvaultError } from "../../model/error.ts";
import { Gathering } from "./gathering.ts";

/** A conversion with the limits and the spill folder of its run's job. */
interface Asked {
  readonly conversion: Conversion;
  readonly means: JobMeans;
}

/** Conversions of up to this many rows wait for others; in larger ones a statement's fixed cost matters little. */
const smallRows = 50_000;
/** The most rows of a group, which DuckDB holds in memory. */
const mostRows = 300_000;
/** The least weight of a conversion, in rows: it limits a group to 24 runs with 8 tables each. */
const leastWeight = mostRows / (24 * 8);

const rowsOf = ({ segments }: Conversion) => segments.reduce((sum, { rows }) => sum + rows, 0);

/**
 * Converts for many runs in one DuckDB, one statement at a time. Small conversions of several runs wait for each other and
 * are done together, table by table; one that differs from the others is done by itself.
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

  /** Call when no more conversions may be coming. */
  hurry(): void {
    this.#small.hurry();
  }

  /** The converter of one run, whose signal ends only its own conversions. */
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
      // a lone conversion costs no more by itself, and its rows are read only once
      if (conversions.length === 1) continue;
      try {
        const { means } = group[0]!;
        const converted = await this.#duckdb.inTurn(means, this.#signal, ({ connection }) =>
          convertTogether(connection, conversions),
        );
        for (const [index, conversion] of conversions.entries()) results.set(conversion, converted[index]);
      } catch (thrown) {
        this.#signal.throwIfAborted();
        // converting each by itself shows which one is at fault
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

/** Groups conversions that may be done together, of one run or several: each still writes its own file. */
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
