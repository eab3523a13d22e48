// Copies the files of SQL, which the compiler leaves behind, into the built package. Part of `npm run build`.
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { macroFiles } from "../src/analytics/sql/macros.ts";

const project = join(import.meta.dirname, "..");
const folder = join("analytics", "sql");
await mkdir(join(project, "dist", folder), { recursive: true });
for (const name of macroFiles) {
  const file = join(folder, `${name}.sql`);
  await copyFile(join(project, "src", file), join(project, "dist", file));
}
