// Run by `runvault query` as a process of its own: a statement may take more memory than it is told to, and may crash.
import { createScrubber } from "../model/scrubber.ts";
import { apartRequest, sayApart } from "./apart-request.ts";
import { keepCompiled } from "./compile-cache.ts";
import type { GlobalValues } from "./global-values.ts";
import { openSession } from "./open-session.ts";
import type { QueryWork } from "./query-answer.ts";
import { processTerminal } from "./terminal.ts";

keepCompiled(process.env);
// behind the cache, from which it is to come
const { answerQuery } = await import("./query-answer.ts");
const { work, ...globals } = (await apartRequest()) as { work: QueryWork } & GlobalValues;
const session = openSession({
  globals,
  terminal: processTerminal(),
  scrubber: createScrubber(),
  // this process is killed, not stopped
  signal: new AbortController().signal,
  write: sayApart,
});
try {
  process.exitCode = await answerQuery(work, session);
} catch (error) {
  process.exitCode = session.failure(error);
}
