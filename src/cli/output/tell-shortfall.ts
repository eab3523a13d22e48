import type { Shortfall, WithheldTable } from "../../analytics/shortfall.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import { countText } from "../../model/text/plural.ts";
import type { Session } from "../process/session.ts";
import { shellWord } from "./shell-word.ts";

/**
 * Reports on standard error what a reader left out or what is not proven: as text, or, with --json, one object per
 * line. Returns the exit status.
 */
export async function tellShortfall(
  shortfall: Shortfall,
  { strict }: { readonly strict: boolean },
  session: Session,
): Promise<number> {
  const { isShort, shortfallNotes } = await import("../../analytics/shortfall.ts");
  const notes = shortfallNotes(shortfall);
  if (session.json) {
    if (notes.length > 0) session.note(JSON.stringify(shortfall));
  } else for (const note of notes) session.note(`warning: ${note}`);
  if (!strict || !isShort(shortfall)) return exit.done;
  const { runs, withheld, behind } = shortfall;
  const counts = [
    ...(runs === 0 ? ["there are no runs"] : []),
    ...(withheld.length > 0 ? [`${countText(withheld.length, "table")} left out`] : []),
    ...(behind.length > 0 ? [`${countText(behind.length, "table")} behind`] : []),
  ];
  return session.failure(
    new RunvaultError("incomplete", `not everything requested is proven: ${counts.join(", ")}`, {
      hint: hintFor(shortfall),
    }),
  );
}

/** What to do next: `runs` does not show runs and tables that were never archived. */
function hintFor({ runs, withheld, behind }: Shortfall): string {
  if (runs === 0) return "`runvault archive INSTANCE/RUN` archives a run; or leave out --strict.";
  const never = withheld.filter(({ state }) => state === null);
  const neverArchived = never.length === 0 ? "" : neverArchivedHint(never);
  if (never.length > 0 && never.length === withheld.length && behind.length === 0) {
    return `${neverArchived}, or leave out --strict.`;
  }
  const others = "`runvault runs` says why; archive what it names again, or leave out --strict.";
  return neverArchived === "" ? others : `${neverArchived}. For the rest, ${others}`;
}

/** Names the missing tables of the first run, and the command that fetches them. */
function neverArchivedHint(never: readonly WithheldTable[]): string {
  const [tables, ...more] = Map.groupBy(never, ({ instance, run }) =>
    formatRun({ instanceId: instance, runId: run }),
  );
  const [run, own] = tables!;
  const names = own.map(({ table }) => table);
  const others =
    more.length === 0 ? "" : `, and tables are missing from ${countText(more.length, "other run")}`;
  return `${names.join(", ")} ${names.length === 1 ? "was" : "were"} never archived for ${run}${others}: \`runvault archive ${shellWord(run)} --tables ${names.join(",")}\``;
}
