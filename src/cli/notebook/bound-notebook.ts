import { readFile } from "node:fs/promises";
import { z } from "zod";
import { packageFile } from "../../model/package-file.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { shellWord } from "../output/shell-word.ts";

/** The notebook on one run, which ships with the package. */
const template = packageFile("notebooks/one-run.ipynb");

/** The parts of a notebook that are changed. */
const notebookSchema = z.object({
  cells: z.array(
    z.object({
      cell_type: z.enum(["markdown", "code"]),
      metadata: z.object({ tags: z.array(z.string()).optional() }),
      source: z.array(z.string()),
    }),
  ),
});

/** The run in the template's command for its database. */
const templateRun = "--run alpha-1/2022-01-01-001 --out run.duckdb";

/** The text of the notebook on one run, which opens the database of this name in its folder. */
export async function boundNotebook(archive: string, run: RunRef, database: string): Promise<string> {
  const notebook: unknown = JSON.parse(await readFile(template, "utf8"));
  const words = [archive, formatRun(run)].map(shellWord);
  const options = `--archive ${words[0]} --run ${words[1]} --out ${database} --force`;
  const sources = notebookSchema.parse(notebook).cells.map(({ cell_type, metadata, source }) => {
    if (metadata.tags?.includes("parameters")) return parameters(run, database);
    return cell_type === "markdown" ? source.map((line) => line.replace(templateRun, () => options)) : source;
  });
  const { cells } = notebook as { readonly cells: { source: readonly string[] }[] };
  for (const [index, source] of sources.entries()) cells[index]!.source = source;
  return `${JSON.stringify(notebook, null, 1)}\n`;
}

/** The cell with the notebook's run and database. */
function parameters({ instanceId, runId }: RunRef, database: string): string[] {
  return [
    `DATABASE = ${pythonString(database)}\n`,
    `INSTANCE, RUN = ${pythonString(instanceId)}, ${pythonString(runId)}`,
  ];
}

/** A Python literal: Python reads JSON's escapes the same way. */
function pythonString(text: string): string {
  return JSON.stringify(text);
}
