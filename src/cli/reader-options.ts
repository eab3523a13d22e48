import { Option } from "commander";
import { z } from "zod";
import type { Shortfall } from "../analytics/shortfall.ts";
import { exit, RunvaultError } from "../model/error.ts";
import type { Session } from "./session.ts";

/** `--allow-incomplete` of commands that read rows. */
export function allowIncompleteOption(): Option {
  return new Option(
    "--allow-incomplete",
    "show what the latest attempts brought, proven or not, in place of what is proven",
  ).conflicts("strict");
}

/** `--strict` of commands that read rows. */
export function strictOption(): Option {
  return new Option(
    "--strict",
    "exit status 4 where nothing is proven of a table asked for, or its latest attempt went wrong",
  );
}

export const readerShape = {
  allowIncomplete: z.boolean().default(false),
  strict: z.boolean().default(false),
};

/**
 * Tells on standard error where a reader shows less than it was asked for: in words, or, with --json, as one object a
 * line. Gives the exit status that this leads to.
 */
export async function tellShortfall(
  shortfall: Shortfall,
  { strict }: { readonly strict: boolean },
  session: Session,
): Promise<number> {
  const { isShort, shortfallNotes } = await import("../analytics/shortfall.ts");
  const notes = shortfallNotes(shortfall);
  if (session.json) {
    if (notes.length > 0) session.note(JSON.stringify(shortfall));
  } else for (const note of notes) session.note(`note: ${note}`);
  if (!strict || !isShort(shortfall)) return exit.done;
  const { runs, withheld, behind } = shortfall;
  const counts = [
    ...(runs === 0 ? ["there are no runs"] : []),
    ...(withheld.length > 0 ? [`${withheld.length} tables of runs are left out`] : []),
    ...(behind.length > 0 ? [`${behind.length} are behind`] : []),
  ];
  return session.failure(
    new RunvaultError("incomplete", `not all that was asked for is proven: ${counts.join(", ")}`, {
      hint: "`runvault runs` says why; archive what it names again, or leave out --strict.",
    }),
  );
}
