// Serves an archive from the built package, compression and all forms on; prints its address and ends with its input.
//   node bench/serve-archive.ts DIR

import { parquetForms } from "../dist/analytics/parquet-forms.js";
import { openArchive } from "../dist/archive/archive.js";
import { openArchiveSource } from "../dist/archive/archive-source.js";
import { serve } from "../dist/serve/server.js";

const [dir] = process.argv.slice(2) as [string];
const source = openArchiveSource(await openArchive(dir), { forms: parquetForms });
const served = await serve({ source, host: "127.0.0.1", port: 0, compress: true });
process.stdout.write(`${served.url}\n`);
process.stdin.resume().once("end", async () => {
  await served.close();
  await source[Symbol.asyncDispose]();
});
