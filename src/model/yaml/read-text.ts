import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { TreeFault } from "./tree.ts";

/** Larger than any file that a person writes for us. */
const mostBytes = 64 * 1024;

/**
 * The text and bytes of a file that people write, or why it cannot be read. Never blocks on a pipe. `name` says what
 * the file should be: `a job file`.
 */
export async function readText(
  path: string,
  name: string,
): Promise<{ readonly text: string; readonly bytes: Buffer } | { readonly fault: TreeFault }> {
  const bytes = await readBytes(path);
  if (typeof bytes === "string") {
    return { fault: wholeFile(bytes, `Name ${name} that this user can read.`) };
  }
  if (bytes.length > mostBytes) {
    return {
      fault: wholeFile(`is larger than ${mostBytes / 1024} KiB`, `Name ${name}: none is that large.`),
    };
  }
  const text = decoded(bytes);
  return typeof text === "string" ? { text, bytes } : { fault: text };
}

/** The bytes of a file, up to one more than allowed; or why it cannot be read, in words. */
async function readBytes(path: string): Promise<Buffer | string> {
  try {
    // a pipe without a writer would block a thread, which no signal ends
    await using handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await handle.stat()).isFile()) return "is not a regular file";
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(mostBytes + 1), 0, mostBytes + 1, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? "does not exist" : `cannot be read: ${code}`;
  }
}

/** The text of a file, or what is wrong if it is not UTF-8. */
function decoded(bytes: Buffer): string | TreeFault {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    const before = validPart(bytes);
    const lines = before.split("\n");
    const place = { kind: "file", line: lines.length, column: lines.at(-1)!.length + 1 } as const;
    return { place, key: null, text: null, message: "this is not UTF-8", hint: "Save the file as UTF-8." };
  }
}

/** What comes before the first byte that is not UTF-8. */
function validPart(bytes: Buffer): string {
  const replaced = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  for (let at = replaced.indexOf("\ufffd"); at >= 0; at = replaced.indexOf("\ufffd", at + 1)) {
    const before = replaced.slice(0, at);
    const length = Buffer.byteLength(before);
    if (!bytes.subarray(length, length + 3).equals(Buffer.from("\ufffd"))) return before;
  }
  return "";
}

function wholeFile(message: string, hint: string): TreeFault {
  return {
    place: { kind: "file", line: 0, column: 0 },
    key: null,
    text: null,
    message: `the file ${message}`,
    hint,
  };
}
