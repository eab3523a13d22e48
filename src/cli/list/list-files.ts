import { committedParquet, requireWhole } from "../../analytics/files/committed-parquet.ts";
import { refuseMixedTypes } from "../../analytics/files/typed-parquet.ts";
import { shortfallOf } from "../../analytics/shortfall.ts";
import { openArchive } from "../../archive/archive.ts";
import { WholeFiles } from "../../archive/read/whole-files.ts";
import type { TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { visible } from "../../model/text/visible-text.ts";
import { tellShortfall } from "../output/tell-shortfall.ts";
import type { Session } from "../process/session.ts";
import { manifestsOf } from "./manifests-of.ts";

interface Values {
  readonly archive: string;
  readonly allowIncomplete: boolean;
  readonly strict: boolean;
}

/** Prints the committed Parquet files of tables, all from one state of the archive, each checked against its commit. */
export async function listFiles(
  tables: readonly TableName[],
  runs: readonly RunRef[],
  values: Values,
  session: Session,
): Promise<number> {
  const archive = await openArchive(values.archive);
  const manifests = await manifestsOf(archive, runs);
  const whole = new WholeFiles(archive);
  const files = [];
  for (const table of tables) {
    const committed = committedParquet(archive, manifests, table, values.allowIncomplete);
    refuseMixedTypes(table, committed);
    await requireWhole(whole, committed, session.signal);
    files.push(
      ...committed.map(({ file, instance, run, bucket, rows, bytes, sha256 }) => {
        return { file, table, instance, run, bucket, rows, bytes, sha256 };
      }),
    );
  }
  if (session.json) await session.print(`${JSON.stringify(files, null, 2)}\n`);
  else {
    // a program opens them by exactly these names
    const shown = session.terminal.stdoutIsTerminal ? visible : (name: string) => name;
    await session.terminal.out(files.map(({ file }) => `${shown(file)}\n`).join(""));
  }
  return await tellShortfall(shortfallOf(manifests, tables, values.allowIncomplete), values, session);
}
