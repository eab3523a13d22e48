import { hostname } from "node:os";
import { exit } from "../../model/error.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { version } from "../../model/version.ts";
import type { Job } from "../../pipeline/file/job-schema.ts";
import type { ToldLine } from "../../pipeline/record/job-record.ts";
import { openNotifiers } from "../../pipeline/tell/open-notifiers.ts";
import { tellTest } from "../../pipeline/tell/tell-test.ts";
import type { Session } from "../process/session.ts";
import { addFileToken, addSecrets } from "./job-secrets.ts";

/** Tests every notifier of a job and reports the results. Returns the exit status. */
export async function testNotifiers(job: Job, session: Session): Promise<number> {
  const { terminal, scrubber, signal } = session;
  addSecrets(job, session);
  await addFileToken(job, session);
  // people who test a notifier want to see its command's output
  const heard = {
    info: (facts: object, text: string) =>
      session.note(`${text}: ${"output" in facts ? String(facts.output).trim() : ""}`),
    // a failure is in the report
    warn: () => {},
  };
  const notifiers = openNotifiers(job, { env: terminal.env, scrubber, log: heard, signal });
  const told = await tellTest(notifiers, { job: job.name, host: hostname(), tool: `runvault ${version()}` });
  signal.throwIfAborted();
  const ok = told.every(({ result }) => result === "done");
  if (session.json) await session.print(`${JSON.stringify({ ok, told: told.map(toldJson) }, null, 2)}\n`);
  else await session.print(toldText(told));
  return ok ? exit.done : exit.gateway;
}

function toldJson({ to, result, attempts, error }: ToldLine) {
  const why = error === null ? null : { code: error.code, message: error.message, hint: error.hint };
  return { to, ok: result === "done", attempts, error: why };
}

function toldText(told: readonly ToldLine[]): string {
  if (told.length === 0) return "the job file has no notifiers\n";
  return told
    .map(({ to, attempts, error }) => {
      if (error === null) return `${to}: ok\n`;
      const tried = `${visible(error.message)} (${countText(attempts, "attempt")})`;
      return `${to}: failed: ${tried}\n${error.hint === null ? "" : `  hint: ${visible(error.hint)}\n`}`;
    })
    .join("");
}
