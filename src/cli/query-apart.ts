// Run by `runvault query` and `runvault shell` as a process of its own: a statement may take more memory than it is told to,
// and may crash.
import { createScrubber } from "../model/scrubber.ts";
import { answerApart, apartRequests, sayApart } from "./apart-request.ts";
import { keepCompiled } from "./compile-cache.ts";
import type { GlobalValues } from "./global-values.ts";
import { openSession } from "./open-session.ts";
import type { QueryWork } from "./query-answer.ts";
import { processTerminal } from "./terminal.ts";

keepCompiled(process.env);
// behind the cache, from which it is to come
const { toldAnswer } = await import("./query-answer.ts");
const terminal = processTerminal();
for await (const asked of apartRequests()) {
  const { work, ...globals } = asked as { work: QueryWork } & GlobalValues;
  // this process is killed, not stopped
  const { signal } = new AbortController();
  const session = openSession({
    ...{ globals, terminal, scrubber: createScrubber(), signal, write: sayApart },
    folders: { archive: work.archive },
  });
  answerApart(await toldAnswer(work, session));
}
