import { createScrubber } from "../model/text/scrubber.ts";
import { answerApart, apartRequests, sayApart } from "./apart-request.ts";
import type { GlobalValues } from "./global-values.ts";
import { openSession } from "./open-session.ts";
import { type QueryWork, toldAnswer } from "./query-answer.ts";
import { processTerminal } from "./terminal.ts";

/** Answers the statements that the process which started this one asks for, until it wants no more. */
export async function answerRequests(): Promise<void> {
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
}
