import type { Gateway } from "../../gateway/gateway.ts";
import { RunvaultError } from "../../model/error.ts";
import type { HistorySource, RowRequest } from "../../model/source.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { durationText } from "../../model/text/duration-text.ts";

export interface BudgetOptions {
  /** Longest time for the whole command, in milliseconds. Default: no limit. */
  readonly maxTime?: number | undefined;
  /** Most mebibytes of row text for the whole command. Default: no limit. */
  readonly maxBytes?: number | undefined;
  /** The name of the byte limit. Default: `--max-bytes`. */
  readonly bytesName?: string | undefined;
}

/** The limits of a command; its signal aborts when one is reached. */
export interface Budget extends Disposable {
  /** Aborts once the budget is used up, with an `incomplete` error that concerns the job and names the option. */
  readonly signal: AbortSignal;
  /** The gateway; its rows count towards the budget. */
  readonly gateway: Gateway;
  /** Begins a run that has kept nothing yet. */
  begin(): BudgetedRun;
}

/** A run of a command that has a budget. */
export interface BudgetedRun {
  /** Records that some of the run's work is kept. */
  keep(): void;
  /** The run's error; if the budget caused it, with the hint that fits. */
  explain(error: RunvaultError): RunvaultError;
}

/** Opens the budget of a command; its time begins now. */
export function openBudget(
  { maxTime, maxBytes, bytesName = "--max-bytes" }: BudgetOptions,
  gateway: Gateway,
): Budget {
  const controller = new AbortController();
  const { signal } = controller;
  /** Some of any run's work is kept. */
  let wasKept = false;
  const spend = (message: string) =>
    controller.abort(new RunvaultError("incomplete", message, { scope: "job", hint: goOn }));
  const timer =
    maxTime === undefined
      ? undefined
      : setTimeout(
          () =>
            spend(
              `--max-time was reached after ${maxTime < 1_000 ? `${maxTime} ms` : durationText(maxTime)}`,
            ),
          maxTime,
        );
  const mostBytes = maxBytes === undefined ? Number.POSITIVE_INFINITY : maxBytes * 1024 * 1024;
  let bytes = 0;
  async function* counted(rows: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
    for await (const chunk of rows) {
      bytes += chunk.byteLength;
      if (bytes > mostBytes) spend(`${bytesName} was reached: ${byteText(bytes)} of rows were fetched`);
      yield chunk;
    }
  }
  const { pagedRows } = gateway;
  const paged = pagedRows && { pagedRows: (request: RowRequest) => counted(pagedRows(request)) };
  const rows: HistorySource["rows"] = (request) => counted(gateway.rows(request));
  return {
    signal,
    gateway: maxBytes === undefined ? gateway : { ...gateway, rows, ...paged },
    begin: () => {
      let isKept = false;
      return {
        keep: () => {
          isKept = true;
          wasKept = true;
        },
        explain: (error) => {
          if (!signal.aborted || isKept || error.message !== (signal.reason as RunvaultError).message)
            return error;
          const { code, message, place, scope } = error;
          return new RunvaultError(code, message, { place, scope, hint: wasKept ? goOn : tooLittle });
        },
      };
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

const goOn = "Run the same command again: it continues from what is already fetched.";
const tooLittle =
  "Nothing could be kept: the budget ended before the first segment, or during a pass over a table that cannot be interrupted. Raise --max-time or --max-bytes.";
