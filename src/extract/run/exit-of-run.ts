import { isAmiss } from "../../archive/manifest/acceptance.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { errorCodes, exit, worstExit } from "../../model/error.ts";

/** The exit status for a committed run: that of its tables' errors, and 4 if anything is neither proven nor accepted. */
export function exitOfRun(
  manifest: Manifest,
  { tables: asked }: { readonly tables?: readonly string[] | undefined },
): number {
  const tables = Object.entries(manifest.tables).filter(
    ([name]) => asked === undefined || asked.includes(name),
  );
  const statuses = tables.flatMap(([, table]) => {
    if (!isAmiss(table)) return [exit.done];
    const code = table.attempt.error?.code;
    const own =
      code !== undefined && code in errorCodes
        ? errorCodes[code as keyof typeof errorCodes].exit
        : exit.incomplete;
    return [exit.incomplete, own];
  });
  if (tables.every(([, { state }]) => state === "ABSENT")) statuses.push(exit.incomplete);
  return worstExit(statuses);
}
