import { createScrubber } from "../../model/text/scrubber.ts";
import type { GlobalValues } from "../options/global-values.ts";
import { processTerminal } from "../output/terminal.ts";
import { openSession } from "../process/open-session.ts";
import { answerApart, apartRequests, sayApart } from "./apart-request.ts";
import { type QueryWork, toldAnswer } from "./query-answer.ts";

/** Answers the parent process's statements until it sends no more. */
export async function answerRequests(): Promise<void> {
  const terminal = processTerminal();
  for await (const asked of apartRequests()) {
    const { work, ...globals } = asked as { work: QueryWork } & GlobalValues;
    // this process is killed, never stopped cleanly
    const { signal } = new AbortController();
    const session = openSession({
      ...{ globals, terminal, scrubber: createScrubber(), signal, write: sayApart },
      folders: { archive: work.archive },
    });
    answerApart(await toldAnswer(work, session));
  }
}
