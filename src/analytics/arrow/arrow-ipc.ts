import {
  AsyncByteQueue,
  type RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
} from "apache-arrow";
import type { QueryResult } from "../query/query.ts";
import { arrowBatches, arrowSchema } from "./arrow-batch.ts";
import { wholeColumns } from "./string-pieces.ts";

/** An answer as Arrow IPC. Throws `value_out_of_range` for a HUGEINT beyond 38 digits. */
export function arrowAnswer(result: QueryResult, form: "file" | "stream"): AsyncGenerator<Uint8Array> {
  const { columns } = result;
  const schema = arrowSchema(columns);
  return arrowIpc(form, arrowBatches(columns, schema, wholeColumns(columns), result.chunks()));
}

/**
 * Record batches as Arrow IPC, in pieces: `file` ends with an index and can be memory-mapped, `stream` is read from
 * front to back. Holds one batch; the library's own writer would queue everything that the reader has not taken yet.
 */
export async function* arrowIpc(
  form: "file" | "stream",
  batches: AsyncIterable<RecordBatch>,
): AsyncGenerator<Uint8Array> {
  const writer = form === "file" ? new RecordBatchFileWriter() : new RecordBatchStreamWriter();
  const pieces = new Pieces();
  writer.reset(pieces);
  for await (const batch of batches) {
    writer.write(batch);
    yield* pieces.take();
  }
  writer.close();
  yield* pieces.take();
}

/** The writer's output, held until it is taken. */
class Pieces extends AsyncByteQueue {
  #held: Uint8Array[] = [];

  override write(value: Uint8Array): void {
    this.#held.push(value);
  }

  take(): Uint8Array[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }
}
