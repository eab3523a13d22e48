import { on } from "node:events";
import { readSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** What the process that started this one asks for, a line each. */
export interface ApartRequest {
  readonly request: unknown;
}

/** What this process says to the one that started it: a text for people, or that a request is done. */
export type ApartMessage = { readonly say: string } | { readonly answer: unknown };

/**
 * What the process that started this one asks for, one request after another, until it says that it wants no more. This
 * one lives no longer than that one: when its pipe ends, the temporary folder is removed, and all threads end at once.
 */
export async function* apartRequests(): AsyncGenerator<unknown> {
  const { stdin } = process;
  const lines = createInterface({ input: stdin });
  // that of this process alone, for what does not fit into memory: known from the start, whenever the other one ends
  const [, , folder] = process.argv;
  const removeFolder = () => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  };
  lines.once("close", () => {
    removeFolder();
    process.kill(process.pid, "SIGKILL");
  });
  // a terminal that is closed ends the other process, and this one has a folder to remove
  process.on("SIGHUP", () => {});
  for await (const [line] of on(lines, "line") as AsyncIterable<[string]>) {
    if (line === "") break;
    yield (JSON.parse(line) as ApartRequest).request;
  }
  // the other one would do so, too, but may be killed ahead of that
  removeFolder();
  // the pipe stays open; it must not keep a process that is done
  if ("unref" in stdin && typeof stdin.unref === "function") stdin.unref();
}

/** Says something to people, by way of the process that started this one. Waits until it is said: rows come after it. */
export function sayApart(text: string): void {
  send({ say: text });
  readSync(4, Buffer.alloc(1));
}

/** Ends a request. */
export function answerApart(answer: unknown): void {
  send({ answer });
}

function send(message: ApartMessage): void {
  writeFileSync(3, `${JSON.stringify(message)}\n`);
}
