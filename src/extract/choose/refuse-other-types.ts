import type { Archive } from "../../archive/archive.ts";
import { RunvaultError } from "../../model/error.ts";
import { tableNamed } from "../../model/profile/table.ts";

/** DuckDB types asked for, by table and column. */
export type AskedTypes = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Throws `invalid_argument` if the types asked for differ from those of an existing archive. */
export function refuseOtherTypes(archive: Archive, asked: AskedTypes): void {
  for (const [table, types] of Object.entries(asked)) {
    for (const [column, type] of Object.entries(types)) {
      const kept = archive.exactTypes(tableNamed(table).name)[column];
      if (kept === type) continue;
      throw new RunvaultError(
        "invalid_argument",
        `--decimal ${table}.${column}: this archive keeps it as ${kept}, not as ${type}`,
        {
          place: { file: archive.dir },
          hint: "Types are fixed when an archive is made: leave --decimal out, or point --archive at a new folder.",
        },
      );
    }
  }
}
