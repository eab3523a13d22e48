import { once } from "node:events";
import { rmSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

/** What the process that started this one asks for. */
export interface ApartRequest {
  /** Folder of this process alone, for what does not fit into memory. */
  readonly temporary: string;
  readonly request: unknown;
}

/**
 * Reads what the process that started this one asks for. From then on this one lives no longer than that one: when its
 * pipe ends, the temporary folder is removed, and all threads end at once.
 */
export async function apartRequest(): Promise<unknown> {
  const { stdin } = process;
  const lines = createInterface({ input: stdin });
  const [line] = (await once(lines, "line")) as [string];
  const { temporary, request } = JSON.parse(line) as ApartRequest;
  lines.once("close", () => {
    rmSync(temporary, { recursive: true, force: true });
    process.kill(process.pid, "SIGKILL");
  });
  // the pipe stays open; it must not keep a process that is done
  if ("unref" in stdin && typeof stdin.unref === "function") stdin.unref();
  return request;
}

/** Says something to people, by way of the process that started this one. */
export function sayApart(text: string): void {
  writeSync(3, text);
}
