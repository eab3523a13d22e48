import { constants } from "node:fs";
import { open, rm } from "node:fs/promises";
import { basename } from "node:path";
import { isMissing, replaceUnsynced, writeAside } from "../../archive/storage/fsync-files.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Teller } from "./tell-one.ts";

/** Of figures, which are some kilobytes; what is larger is none of ours. */
const mostBytes = 16 * 1024 * 1024;

/** node_exporter is another user. */
const everybodyReads = 0o644;

/** A file of figures that is to be replaced as a whole. `text` makes them; it gets the text that is there now. */
export function textfileTeller(file: string, text: (old: string) => Promise<string>): Teller {
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

/** The same as far as it goes without figures: whether the file could be replaced, by one that is gone again at once. */
export function textfileTest(file: string): Teller {
  return {
    ...textfileTeller(file, async () => ""),
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
    // a pipe would be waited for without end; of a link it is what it leads to that counts
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const found = await handle.stat();
    if (!found.isFile() || found.size > mostBytes)
      throw new RunvaultError("invalid_argument", "it is no file of figures");
    return await handle.readFile("utf8");
  } catch (error) {
    if (isMissing(error)) return "";
    throw error;
  }
}

/** Names the file alone, for a record has no path of its machine. */
function unwritten(file: string, thrown: unknown): RunvaultError {
  const { code } = RunvaultError.from(thrown);
  const why = thrown instanceof RunvaultError ? thrown.message : (thrown as NodeJS.ErrnoException).code;
  return new RunvaultError(code, `the metrics file ${basename(file)} could not be written (${why})`, {
    hint: "Check metrics.textfile: its folder has to be there, and the user that runs the job has to be able to write to it.",
  });
}
