// Fails when the built package imports a .ts file: the compiler leaves `import()` as it is in some functions with
// `await using`, and the command would only miss its module when it runs. Part of `npm run build`.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const dist = join(import.meta.dirname, "..", "dist");
const files = (await readdir(dist, { recursive: true })).filter((file) => file.endsWith(".js"));
for (const file of files) {
  const lines = (await readFile(join(dist, file), "utf8")).split("\n");
  lines.forEach((line, i) => {
    if (!/\b(?:import\(|from |import )"[^"]*\.ts"/.test(line)) return;
    process.stderr.write(`dist/${file}:${i + 1} imports a .ts file: ${line.trim()}\n`);
    process.stderr.write("  Move the import() to a function of its own, without `await using`.\n");
    process.exitCode = 1;
  });
}
