import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { writeAside } from "../../analytics/export/export-file.ts";
import type { InstrumentsFile } from "../../analytics/instruments/read-instruments.ts";
import { openQuery, type QueryResult } from "../../analytics/query/query.ts";
import { type Format, isTextFormat } from "../../analytics/render/format.ts";
import { render } from "../../analytics/render/render.ts";
import { openArchive } from "../../archive/archive.ts";
import { Disposables } from "../../model/disposables.ts";
import { exit } from "../../model/error.ts";
import { makeTemporaryFolder } from "../../model/temporary-folder.ts";
import { tellShortfall } from "../output/tell-shortfall.ts";
import type { Session } from "../process/session.ts";
import { placedError, type SqlText } from "../shell/sql-text.ts";

/** A statement and the form of its answer. */
export interface QueryWork {
  readonly archive: string;
  readonly sql: SqlText;
  readonly format: Format;
  /** Where the answer goes; null for standard output. It is written to `aside`, which then replaces `file`. */
  readonly to: { readonly file: string; readonly aside: string } | null;
  readonly allowIncomplete: boolean;
  readonly strict: boolean;
  /** Milliseconds. */
  readonly timeout: number;
  /** Mebibytes. */
  readonly memory: number;
  readonly threads: number;
  /** Rows shown in a table; null to let the terminal decide. */
  readonly tableRows: number | null;
  /** The file of `--instruments`; null if none was given. */
  readonly instruments: string | null;
}

/** The exit status of a statement and the rows of its answer, null if it has none. */
export interface QueryAnswer {
  readonly status: number;
  readonly rows: number | null;
}

/** Runs the statement, writes its answer and reports errors. */
export async function toldAnswer(work: QueryWork, session: Session): Promise<QueryAnswer> {
  try {
    return await answerQuery(work, session);
  } catch (error) {
    return { status: session.failure(error), rows: null };
  }
}

/** Default number of rows shown on a terminal. */
const terminalRows = 1_000;

/** Reads the instruments file. Without one, no YAML code is loaded. */
async function instrumentsIn(file: string | null): Promise<InstrumentsFile | null> {
  if (file === null) return null;
  const { readInstruments } = await import("../../analytics/instruments/read-instruments.ts");
  return await readInstruments(file);
}

/** Runs the statement and writes its answer. */
export async function answerQuery(work: QueryWork, session: Session): Promise<QueryAnswer> {
  const { format, to } = work;
  const instruments = await instrumentsIn(work.instruments);
  const archive = await openArchive(work.archive);
  await using folders = new Disposables();
  let parquetFile = to?.aside;
  if (format === "parquet" && to === null) {
    const folder = await makeTemporaryFolder("query");
    folders.defer(() => rm(folder, { recursive: true, force: true }));
    parquetFile = join(folder, "answer.parquet");
  }
  await using query = await openQuery(archive, {
    allowIncomplete: work.allowIncomplete,
    memoryLimitMb: work.memory,
    timeoutMs: work.timeout,
    threads: work.threads,
    signal: session.signal,
    instruments,
    parquetFile: format === "parquet" ? parquetFile : undefined,
  });
  try {
    const result = await query.run(work.sql.text, session.signal);
    // before the rows: an incomplete answer must not look complete
    const status =
      result.shortfall === null ? exit.done : await tellShortfall(result.shortfall, work, session);
    if (format === "parquet") await result.writeParquet(parquetFile!);
    if (format !== "parquet" || to === null) {
      const pieces =
        format === "parquet" ? createReadStream(parquetFile!) : await piecesOf(result, work, session);
      if (to !== null) await writeAside(to, pieces);
      else await send(pieces, format, session);
    }
    return { status, rows: result.rows };
  } catch (error) {
    throw placedError(error, work.sql);
  }
}

async function piecesOf(
  result: QueryResult,
  { format, tableRows, to }: QueryWork,
  session: Session,
): Promise<AsyncIterable<string | Uint8Array>> {
  if (isTextFormat(format)) {
    const { columns } = session.terminal;
    const isShown = to === null && columns !== null;
    return render(result, format, {
      mostRows: tableRows ?? (isShown ? terminalRows : undefined),
      width: isShown ? columns : undefined,
      onCut: (note) => session.note(`note: ${note}`),
    });
  }
  // Arrow code is loaded only for Arrow output
  const { arrowAnswer } = await import("../../analytics/arrow/arrow-ipc.ts");
  const { textColumns } = await import("../../analytics/arrow/arrow-type.ts");
  const text = textColumns(result.columns);
  if (text.length > 0) session.note(`note: as text: ${text.join(", ")}`);
  // a file gets an index after its rows, for memory mapping; a stream is read as it arrives
  return arrowAnswer(result, format === "arrow" && to !== null ? "file" : "stream");
}

async function send(
  pieces: AsyncIterable<string | Uint8Array>,
  format: Format,
  { print, terminal }: Session,
): Promise<void> {
  const isJson = format === "json" || format === "ndjson";
  // programs get the data unchanged; JSON on a terminal has control characters escaped
  const isForPeople = format === "table" || format === "vertical" || (isJson && terminal.stdoutIsTerminal);
  for await (const piece of pieces) {
    const isThere = isForPeople ? await print(String(piece)) : await terminal.out(piece);
    if (!isThere) break;
  }
}
