import type { Command } from "commander";
import { z } from "zod";
import type { ArchiveDiff } from "../../archive/diff/diff.ts";
import { exit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({ a: nonEmpty, b: nonEmpty });

type DiffValues = z.output<typeof schema>;

/** `runvault maintain diff A B` */
export const diffCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  declare: (command: Command) =>
    command
      .description(
        "Compares two archives: per table the same lines in the same order, the same row hash, the same buckets and " +
          "counts. Times, generations and file names do not count. Exit status 4 when they differ.",
      )
      .argument("<a>", "an archive folder")
      .argument("<b>", "another archive folder")
      .option("--json", "report as JSON")
      .addHelpText("after", "\nExample:\n  runvault maintain diff archive /mnt/copy/archive\n"),
  run: diff,
});

async function diff(values: DiffValues, session: Session): Promise<number> {
  const { openArchive } = await import("../../archive/archive.ts");
  const { diffArchives } = await import("../../archive/diff/diff.ts");
  const [a, b] = [await openArchive(values.a), await openArchive(values.b)];
  const compared = async () => {
    using progress = session.progress();
    return await diffArchives(a, b, {
      signal: session.signal,
      onTable: (run, { rows }) => {
        progress.on(formatRun(run));
        progress.add(rows.a ?? rows.b ?? 0, 0);
      },
    });
  };
  const result = await compared();
  await session.print(session.json ? `${JSON.stringify(result, null, 2)}\n` : textOf(result));
  return result.equal ? exit.done : exit.incomplete;
}

function textOf({ equal, runs, onlyInA, onlyInB }: ArchiveDiff): string {
  const lines: string[] = [];
  for (const run of onlyInA) lines.push(`${formatRun(run)}  only in the first archive`);
  for (const run of onlyInB) lines.push(`${formatRun(run)}  only in the second archive`);
  for (const { run, equal, differences, notes, tables } of runs) {
    lines.push(`${formatRun(run)}  ${equal ? "equal" : "different"}`);
    for (const text of differences) lines.push(`  ${text}`);
    for (const text of notes) lines.push(`  note: ${text}`);
    for (const table of tables) {
      const rows = table.rows.a ?? table.rows.b ?? 0;
      lines.push(
        `  ${table.table}: ${table.equal ? `equal, ${grouped(rows)} ${plural(rows, "row")}` : "different"}`,
      );
      for (const text of table.differences) lines.push(`    ${text}`);
      const first = table.firstDifference;
      if (first !== null) lines.push(`    line ${first.line}`, `    < ${first.a}`, `    > ${first.b}`);
      for (const text of table.notes) lines.push(`    note: ${text}`);
    }
  }
  lines.push(equal ? "equal" : "different");
  return `${lines.map(visible).join("\n")}\n`;
}
