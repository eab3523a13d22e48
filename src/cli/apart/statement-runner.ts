import type { z } from "zod";
import type { ExportFile } from "../../analytics/export/export-file.ts";
import { queryTimedOut } from "../../analytics/query/query-timed-out.ts";
import type { Format } from "../../analytics/render/format.ts";
import { RunvaultError } from "../../model/error.ts";
import type { statementShape } from "../options/statement-options.ts";
import type { Session } from "../process/session.ts";
import { placedError, type SqlText } from "../shell/sql-text.ts";
import type { QueryAnswer, QueryWork } from "./query-answer.ts";
import type { ApartEnd } from "./run-apart.ts";

type Limits = z.output<z.ZodObject<typeof statementShape>>;

/** The form in which one statement is answered. */
export interface AnswerForm {
  readonly format: Format;
  /** The file for the answer; null for standard output. */
  readonly out: { readonly file: string; readonly force: boolean } | null;
}

/** An answer, with its file and that file's size. */
export interface StatementAnswer extends QueryAnswer {
  readonly written: { readonly file: string; readonly bytes: number } | null;
}

/** Runs a user's statements one at a time and writes their answers to standard output or files. */
export interface StatementRunner extends AsyncDisposable {
  /**
   * Reports what is wrong with a statement and returns its exit status. Throws if the process did not end normally, and
   * the signal's reason when aborted.
   */
  run(sql: SqlText, form: AnswerForm, signal: AbortSignal): Promise<StatementAnswer>;
}

/** Loaded only to write a file. */
async function createFile(...args: Parameters<typeof ExportFile.create>): Promise<ExportFile> {
  const loaded = await import("../../analytics/export/export-file.ts");
  return await loaded.ExportFile.create(...args);
}

/** Runs statements in a separate process, the same one for as long as it lasts. */
export function openStatementRunner(limits: Limits, session: Session): StatementRunner {
  const { globals, say, terminal } = session;
  const apart =
    terminal.openApart?.({
      module: "query-apart",
      memoryBytes: processMebibytes(limits) * 1024 * 1024,
      say,
    }) ?? null;
  const answer = async (work: QueryWork, signal: AbortSignal): Promise<QueryAnswer> => {
    if (apart === null) {
      const { toldAnswer } = await import("./query-answer.ts");
      return await toldAnswer(work, { ...session, signal });
    }
    // the process stops the statement in time by itself; this is for one that does not react
    const timeoutMs = limits.timeout + 2_000;
    const end = await apart.ask({ request: { work, ...globals }, timeoutMs, signal });
    if (end.kind === "answer") return end.answer as QueryAnswer;
    throw placedError(errorOf(end, limits.timeout), work.sql);
  };
  return {
    run: async (sql, { format, out }, signal) => {
      const { tableRows = null, instruments = null } = limits;
      const work = { ...limits, tableRows, instruments, sql, format };
      if (out === null) return { ...(await answer({ ...work, to: null }, signal)), written: null };
      await using to = await createFile(out.file, { force: out.force, outside: limits.archive });
      const { file, aside } = to;
      const told = await answer({ ...work, to: { file, aside } }, signal);
      // with --strict an incomplete answer is written all the same
      if (told.rows === null) return { ...told, written: null };
      const bytes = await to.sync();
      await to.putInPlace();
      return { ...told, written: { file, bytes } };
    },
    [Symbol.asyncDispose]: async () => await apart?.[Symbol.asyncDispose](),
  };
}

/**
 * How much memory a statement's process may allocate, in mebibytes. DuckDB's operators take up to 1.7 times the memory
 * at which they spill and still succeed (measured in bench/README.md). An idle process has allocated 670, most of it
 * never touched, and each thread adds its stack.
 */
function processMebibytes({
  memory,
  threads,
}: {
  readonly memory: number;
  readonly threads: number;
}): number {
  return 2 * memory + 730 + 16 * threads;
}

/** The error for a process that did not end normally. Blames the statement, unless it never started. */
function errorOf(end: Exclude<ApartEnd, { kind: "answer" }>, timeoutMs: number): RunvaultError {
  switch (end.kind) {
    case "timeout":
      return queryTimedOut(timeoutMs);
    case "memory":
      return tookTooMuch();
    case "crash":
      // V8 and the C++ library both say when they run out of memory; SIGKILL is how the system ends a process that uses
      // too much
      if (/out of memory|bad_alloc/i.test(end.last) || end.by === "SIGKILL")
        return tookTooMuch(new Error(end.last));
      return new RunvaultError("query_invalid", `the query crashed DuckDB (${end.by})`, {
        cause: new Error(end.last === "" ? "it printed nothing" : end.last),
        hint: "Rewrite it: less nesting may help, and so may more memory (--memory, RUNVAULT_MEMORY).",
      });
    case "failed":
      return new RunvaultError("internal", `the query's process ended with status ${end.status}`, {
        cause: new Error(end.last === "" ? "it printed nothing" : end.last),
      });
  }
}

function tookTooMuch(cause?: Error): RunvaultError {
  return new RunvaultError("query_invalid", "the query needed more memory than --memory allows", {
    cause,
    hint: "Narrow the query, or raise --memory (RUNVAULT_MEMORY).",
  });
}
