import { on } from "node:events";
import { readSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** A request from the parent process, one per line. */
export interface ApartRequest {
  readonly request: unknown;
}

/** A message to the parent process: text for people, or the answer to a request. */
export type ApartMessage = { readonly say: string } | { readonly answer: unknown };

/**
 * The parent's requests, one after another, until it closes the pipe. Then the temporary folder is removed and all
 * threads end at once: this process never outlives its parent.
 */
export async function* apartRequests(): AsyncGenerator<unknown> {
  const { stdin } = process;
  const lines = createInterface({ input: stdin });
  // this process's own folder, for data that does not fit into memory; removed however the parent ends
  const [, , folder] = process.argv;
  const removeFolder = () => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  };
  lines.once("close", () => {
    removeFolder();
    process.kill(process.pid, "SIGKILL");
  });
  // closing the terminal ends the parent, and this process still has a folder to remove
  process.on("SIGHUP", () => {});
  for await (const [line] of on(lines, "line") as AsyncIterable<[string]>) {
    if (line === "") break;
    yield (JSON.parse(line) as ApartRequest).request;
  }
  // the parent removes it too, but may be killed before that
  removeFolder();
  // the open pipe must not keep a finished process alive
  if ("unref" in stdin && typeof stdin.unref === "function") stdin.unref();
}

/** Says something to people, by way of the process that started this one. Waits until it is said: rows come after it. */
export function sayApart(text: string): void {
  send({ say: text });
  readSync(4, Buffer.alloc(1));
}

/** Answers a request. */
export function answerApart(answer: unknown): void {
  send({ answer });
}

function send(message: ApartMessage): void {
  writeFileSync(3, `${JSON.stringify(message)}\n`);
}
