import { constants } from "node:fs";
import { open, rm } from "node:fs/promises";
import { basename } from "node:path";
import { isMissing, replaceUnsynced, writeAside } from "../../archive/storage/fsync-files.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Notifier } from "./tell-one.ts";

/** Metrics are some kilobytes; a larger file is not ours. */
const mostBytes = 16 * 1024 * 1024;

/** node_exporter runs as another user. */
const everybodyReads = 0o644;

/** A metrics file that is replaced as a whole. `text` makes the new contents from the old. */
export function textfileNotifier(file: string, text: (old: string) => Promise<string>): Notifier {
  return {
    to: "textfile",
    slow: {
      what: "the metrics file could not be written",
      hint: "Check the disk that metrics.textfile is on.",
    },
    attempt: async () => {
      try {
        await replaceUnsynced(file, Buffer.from(await text(await textOf(file))), everybodyReads);
      } catch (thrown) {
        throw unwritten(file, thrown);
      }
    },
  };
}

/** The same as a test without metrics: creates and removes a file to see whether the real one could be replaced. */
export function textfileTest(file: string): Notifier {
  return {
    ...textfileNotifier(file, async () => ""),
    attempt: async () => {
      try {
        await textOf(file);
        await rm(await writeAside(file, new Uint8Array(), everybodyReads));
      } catch (thrown) {
        throw unwritten(file, thrown);
      }
    },
  };
}

async function textOf(file: string): Promise<string> {
  try {
    // opening a pipe would block; a link counts as its target
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const found = await handle.stat();
    if (!found.isFile() || found.size > mostBytes)
      throw new RunvaultError("invalid_argument", "it is not a metrics file");
    return await handle.readFile("utf8");
  } catch (error) {
    if (isMissing(error)) return "";
    throw error;
  }
}

/** Only the file's name: records contain no paths of this machine. */
function unwritten(file: string, thrown: unknown): RunvaultError {
  const { code } = RunvaultError.from(thrown);
  const why = thrown instanceof RunvaultError ? thrown.message : (thrown as NodeJS.ErrnoException).code;
  return new RunvaultError(code, `the metrics file ${basename(file)} could not be written (${why})`, {
    hint: "Check metrics.textfile: its folder must exist, and the job's user must be able to write to it.",
  });
}
