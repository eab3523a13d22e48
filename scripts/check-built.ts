// Fails when the built package imports a .ts file: the compiler leaves `import()` as it is in some functions with
// `await using`, and the command would only miss its module when it runs. Fails when a file of SQL that is read at run
// time was not copied, and when the notebook that `runvault notebook` writes would not be in the package. Part of
// `npm run build`.
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { macroFiles } from "../src/analytics/sql/macros.ts";

const project = join(import.meta.dirname, "..");
const dist = join(project, "dist");
const built = await readdir(dist, { recursive: true });
const files = built.filter((file) => file.endsWith(".js"));
for (const name of macroFiles) {
  const file = join("analytics", "sql", `${name}.sql`);
  if (built.includes(file)) continue;
  process.stderr.write(`dist/${file} is missing\n  scripts/copy-sql.ts copies it from src/.\n`);
  process.exitCode = 1;
}
const shipped: unknown = JSON.parse(await readFile(join(project, "package.json"), "utf8")).files;
if (
  !(shipped as string[]).includes("notebooks") ||
  !existsSync(join(project, "notebooks", "one-run.ipynb"))
) {
  process.stderr.write("notebooks/one-run.ipynb is missing, or package.json does not list notebooks\n");
  process.exitCode = 1;
}
for (const file of files) {
  const lines = (await readFile(join(dist, file), "utf8")).split("\n");
  lines.forEach((line, i) => {
    if (!/\b(?:import\(|from |import )"[^"]*\.ts"/.test(line)) return;
    process.stderr.write(`dist/${file}:${i + 1} imports a .ts file: ${line.trim()}\n`);
    process.stderr.write("  Move the import() to a function of its own, without `await using`.\n");
    process.exitCode = 1;
  });
}
