import { type Command, Option } from "commander";
import { z } from "zod";
import type { WantedTypes } from "../../extract/rebuild/widened-types.ts";
import { RunvaultError } from "../../model/error.ts";
import { extraName, extraTypes } from "../../model/profile/extra-column.ts";
import { runArgumentHelp } from "../../model/run-argument.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { archiveOption, archiveShape, scratchOption, scratchShape } from "../options/archive-option.ts";
import { nonEmpty, tableList, widenTypes } from "../options/option-values.ts";
import { runsNamed } from "../options/runs-named.ts";
import type { Session } from "../process/session.ts";

const schema = z.object({
  ...archiveShape,
  ...scratchShape,
  runs: z.array(z.string()).default([]),
  tables: tableList.optional(),
  widen: widenTypes.optional(),
  extra: tableList.optional(),
  dropExtra: tableList.optional(),
  profile: nonEmpty.optional(),
  links: z.boolean().default(false),
});

type RebuildValues = z.output<typeof schema>;

/** `runvault maintain rebuild [RUN…]` */
export const rebuildCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again: it continues from what is already converted.",
  declare: (command: Command) =>
    command
      .description(
        "Converts the segments of the named runs, or of all, to Parquet again, after checking them. Rows and " +
          "certificates do not change, unless --profile sends the rows through a corrected profile. With --widen, an exact " +
          "column of the whole archive gets a wider type, and every run that has it is rebuilt; until all are, queries " +
          "read both types exactly, and tables/ stays as it was.",
      )
      .argument("[runs...]", runArgumentHelp)
      .option("--tables <names>", "only these tables, separated by commas")
      .addOption(
        new Option(
          "--profile <file>",
          "apply this corrected profile to the archived rows, without fetching any; rows set aside are tried again",
        ).conflicts(["widen", "extra", "dropExtra", "links"]),
      )
      .addOption(
        new Option(
          "--widen <column>",
          "TABLE.COLUMN=WIDTH,SCALE, or TABLE.COLUMN for 38 digits, at least 18 of them decimals; repeatable",
        ).argParser((text: string, before: string[] | undefined) => [...(before ?? []), text]),
      )
      .option(
        "--extra <tables>",
        "add the column extra to the Parquet of these tables: the fields that no column takes, as JSON",
      )
      .option("--drop-extra <tables>", "remove that column again; the segments keep its contents")
      .addOption(
        new Option("--links", "only recreate the links in tables/; no data is read or changed").conflicts([
          "widen",
          "extra",
          "dropExtra",
          "tables",
        ]),
      )
      .addOption(archiveOption())
      .addOption(scratchOption())
      .option("--json", "report as JSON")
      .addHelpText(
        "after",
        `
Examples:
  runvault maintain rebuild alpha-1/2022-01-01-001
  runvault maintain rebuild --widen fills.price --widen orders.price=38,12
  runvault maintain rebuild --extra fills,orders
  runvault maintain rebuild alpha-1/2022-01-01-001 --profile acme.yaml
  runvault maintain rebuild --links
`,
      ),
  run: rebuild,
});

async function rebuild(values: RebuildValues, session: Session): Promise<number> {
  const runs = await runsNamed(values.runs, values.archive, session);
  const widen = columnsToChange(values);
  if (widen !== undefined && (runs.length > 0 || values.tables !== undefined)) {
    const flag =
      values.widen !== undefined ? "--widen" : values.extra !== undefined ? "--extra" : "--drop-extra";
    throw new RunvaultError("invalid_argument", `${flag} applies to the whole archive`, {
      hint: "Leave out run names and --tables: a column has one type in all runs.",
    });
  }
  if (values.links) {
    const { rebuildLinks } = await import("../maintain/rebuild-links.ts");
    return await rebuildLinks(runs, values, session);
  }
  const { reportRebuild } = await import("../maintain/report-rebuild.ts");
  return await reportRebuild(runs, { ...values, widen }, session);
}

/** Columns to change, add or remove; undefined for none. */
function columnsToChange({ widen, extra = [], dropExtra = [] }: RebuildValues): WantedTypes | undefined {
  const both = extra.filter((table) => dropExtra.includes(table));
  if (both.length > 0) {
    throw new RunvaultError("invalid_argument", `--extra and --drop-extra both name ${both.join(", ")}`, {
      hint: "Name each table with one of the two.",
    });
  }
  const wanted: Record<string, Record<string, string | null>> = { ...widen };
  for (const table of extra) wanted[table] = { ...wanted[table], ...extraTypes };
  for (const table of dropExtra) wanted[table] = { ...wanted[table], [extraName]: null };
  return Object.keys(wanted).length === 0 ? undefined : wanted;
}
