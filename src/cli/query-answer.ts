import type { formats } from "../analytics/format.ts";
import { openQuery, type QueryResult } from "../analytics/query.ts";
import { render } from "../analytics/render.ts";
import { openArchive } from "../archive/archive.ts";
import { exit } from "../model/error.ts";
import type { Session } from "./session.ts";
import { tellShortfall } from "./tell-shortfall.ts";

/** One statement and how it is to be answered. */
export interface QueryWork {
  readonly archive: string;
  readonly sql: string;
  readonly format: (typeof formats)[number];
  readonly allowIncomplete: boolean;
  readonly strict: boolean;
  /** Milliseconds. */
  readonly timeout: number;
  /** Mebibytes. */
  readonly memory: number;
  readonly threads: number;
  readonly tableRows: number;
}

/** Runs the statement and writes its answer to standard output. Gives the exit status. */
export async function answerQuery(work: QueryWork, session: Session): Promise<number> {
  const { format } = work;
  const archive = await openArchive(work.archive);
  await using query = await openQuery(archive, {
    allowIncomplete: work.allowIncomplete,
    memoryLimitMb: work.memory,
    timeoutMs: work.timeout,
    threads: work.threads,
    signal: session.signal,
  });
  const result = await query.run(work.sql, session.signal);
  // ahead of the rows: what is not all there must not look like an answer
  const status = result.shortfall === null ? exit.done : await tellShortfall(result.shortfall, work, session);
  if (format === "arrow") {
    await sendArrow(result, session);
    return status;
  }
  const options = { tableRows: work.tableRows, onCut: (note: string) => session.note(`note: ${note}`) };
  const isJson = format === "json" || format === "ndjson";
  // programs get the data as it is; JSON for people means the same without what a terminal would obey
  const isForPeople = format === "table" || (isJson && session.terminal.stdoutIsTerminal);
  const send = isForPeople ? session.print : session.terminal.out;
  for await (const text of render(result, format, options)) {
    if (!(await send(text))) break;
  }
  return status;
}

async function sendArrow(result: QueryResult, session: Session): Promise<void> {
  // what writes Arrow is only loaded for it
  const { arrowStream } = await import("../analytics/arrow-ipc.ts");
  const { textColumns } = await import("../analytics/arrow-type.ts");
  const text = textColumns(result.columns);
  if (text.length > 0) session.note(`note: as text: ${text.join(", ")}`);
  for await (const piece of arrowStream(result)) {
    if (!(await session.terminal.out(piece))) break;
  }
}
