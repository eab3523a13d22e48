import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { parse } from "csv-parse";
import { RunvaultError } from "../../model/error.ts";
import { parseTime } from "../../model/time.ts";
import { type Bar, type BarSource, barMicros } from "./bars.ts";

const batchBars = 1024;
const priceColumns = ["open", "high", "low", "close"] as const;
const plainDecimal = /^(\d+)(?:\.(\d+))?$/;

interface TextBar {
  readonly closeMicros: number;
  readonly closeNanos: number;
  readonly prices: readonly [string, string, string, string];
  readonly volume: string;
  readonly line: number;
}

/**
 * The bars of a CSV file (gzip if its name ends in .gz) with the columns timestamp, open, high, low, close and
 * optionally volume. `timestamp` is the bar's close, UTC without an offset. The file is read twice: here for the
 * finest tick and the checks, and again by `batches`.
 *
 * Values stay the same, in canonical form.
 *
 * Throws `invalid_argument` with file and line for an invalid file, `value_out_of_range` for numbers that do not fit
 * their columns.
 */
export async function csvBars(file: string): Promise<BarSource> {
  let tickDecimals = 0;
  let count = 0;
  let firstCloseMicros = 0;
  let intervalMicros = Number.POSITIVE_INFINITY;
  let previous: TextBar | undefined;
  for await (const bar of textBars(file)) {
    for (const price of bar.prices) tickDecimals = Math.max(tickDecimals, decimalsOf(price));
    if (previous === undefined) {
      firstCloseMicros = bar.closeMicros;
    } else if (bar.closeMicros - previous.closeMicros < barMicros) {
      throw new RunvaultError(
        "invalid_argument",
        "a bar closes less than 60 seconds after the one before it",
        {
          place: { file, line: bar.line },
          hint: "Provide bars of a minute or longer, in time order.",
        },
      );
    } else {
      // bars may be missing, so the shortest step is a bar's length
      intervalMicros = Math.min(intervalMicros, bar.closeMicros - previous.closeMicros);
    }
    previous = bar;
    count += 1;
  }
  if (previous === undefined) {
    throw new RunvaultError("invalid_argument", "the file has no bars", { place: { file } });
  }
  return {
    tickDecimals,
    count,
    firstCloseMicros,
    intervalMicros: Number.isFinite(intervalMicros) ? intervalMicros : barMicros,
    typicalTicks: ticksOf(previous.prices[3], tickDecimals, file, previous.line),
    async *batches() {
      let batch: Bar[] = [];
      for await (const { closeMicros, closeNanos, prices, volume, line } of textBars(file)) {
        const [open, high, low, close] = prices;
        batch.push({
          closeMicros,
          closeNanos,
          open: ticksOf(open, tickDecimals, file, line),
          high: ticksOf(high, tickDecimals, file, line),
          low: ticksOf(low, tickDecimals, file, line),
          close: ticksOf(close, tickDecimals, file, line),
          volume,
        });
        if (batch.length === batchBars) {
          yield batch;
          batch = [];
        }
      }
      if (batch.length > 0) yield batch;
    },
  };
}

async function* textBars(file: string): AsyncGenerator<TextBar> {
  const parser = parse({ columns: true, bom: true, skip_empty_lines: true, info: true });
  const source = createReadStream(file);
  const piped = file.endsWith(".gz") ? pipeline(source, createGunzip(), parser) : pipeline(source, parser);
  // the reader below gets errors of the file or decoder through the parser; this only prevents an unhandled rejection
  piped.catch(() => undefined);
  try {
    for await (const item of parser as AsyncIterable<{
      record: Record<string, string>;
      info: { lines: number };
    }>) {
      yield textBar(item.record, file, item.info.lines);
    }
  } catch (thrown) {
    if (thrown instanceof RunvaultError) throw thrown;
    throw new RunvaultError("invalid_argument", `cannot read bars: ${(thrown as Error).message}`, {
      cause: thrown,
      place: { file },
      hint: "Provide a CSV or CSV.gz file with the columns timestamp, open, high, low, close and optionally volume.",
    });
  } finally {
    parser.destroy();
  }
}

function textBar(record: Record<string, string>, file: string, line: number): TextBar {
  const value = (column: string): string => {
    const text = record[column];
    if (text !== undefined) return text.trim();
    throw new RunvaultError("invalid_argument", `column ${column} is missing`, {
      place: { file, line },
      hint: "The columns are timestamp, open, high, low, close and optionally volume.",
    });
  };
  const [open, high, low, close] = priceColumns.map((column) =>
    canonical(value(column), column, file, line, priceType),
  );
  const volume = record.volume?.trim() ?? "";
  let closeNs: bigint;
  try {
    closeNs = parseTime(value("timestamp"));
  } catch (thrown) {
    throw RunvaultError.from(thrown).at({ file, line });
  }
  return {
    closeMicros: Number(closeNs / 1000n),
    closeNanos: Number(closeNs % 1000n),
    prices: [open!, high!, low!, close!],
    volume: volume === "" ? "" : canonical(volume, "volume", file, line, volumeType),
    line,
  };
}

// the types that these columns of `bars` have in an archive
const priceType = { whole: 9, decimals: 9 };
const volumeType = { whole: 20, decimals: 18 };

/** The canonical text of a plain decimal that fits its column. */
function canonical(
  text: string,
  column: string,
  file: string,
  line: number,
  type: { readonly whole: number; readonly decimals: number },
): string {
  const match = plainDecimal.exec(text);
  if (match === null) {
    throw new RunvaultError("invalid_argument", `${column} is not a plain decimal: ${JSON.stringify(text)}`, {
      place: { file, line },
    });
  }
  const whole = match[1]!.replace(/^0+(?=\d)/, "");
  const fraction = (match[2] ?? "").replace(/0+$/, "");
  if (whole.length > type.whole || fraction.length > type.decimals) {
    const fits = `DECIMAL(${type.whole + type.decimals},${type.decimals})`;
    throw new RunvaultError("value_out_of_range", `${column} does not fit ${fits}: ${text}`, {
      place: { file, line },
    });
  }
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

function decimalsOf(text: string): number {
  const point = text.indexOf(".");
  return point < 0 ? 0 : text.length - point - 1;
}

function ticksOf(text: string, tickDecimals: number, file: string, line: number): number {
  const scaled = BigInt(text.replace(".", "")) * 10n ** BigInt(tickDecimals - decimalsOf(text));
  if (scaled <= 0n || scaled > 9_007_199_254_740_991n) {
    throw new RunvaultError("value_out_of_range", `the price ${text} cannot be expressed in ticks`, {
      place: { file, line },
      hint: "Provide prices above zero and below 2^53 of the file's finest ticks.",
    });
  }
  return Number(scaled);
}
