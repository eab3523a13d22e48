// What one would write instead of using runvault, over the same simulated gateway: a 14-line script (bench/peers/script.py)
// and a 12-line resource of dlt (bench/peers/dlt_resource.py). For each: seconds, peak memory, rows stored and the type of a
// price; and the rows stored from a gateway that ends one answer early, as if complete. README has the table.
//   npm run bench -- peers [--rows 50000] [--python python3]
// The Python needs: pip install 'dlt[parquet]==1.31.0' requests pyarrow; without --python it gets a folder for them.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DuckDBInstance } from "@duckdb/node-api";
import { simulate } from "./simulate.ts";
import { type Timed, timed } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "peers"),
  options: { rows: { type: "string", default: "50000" }, python: { type: "string" } },
});
const python = values.python ?? installed();
const peers = join(import.meta.dirname, "peers");
const runvault = `'${process.execPath}' '${join(import.meta.dirname, "..", "dist", "cli", "main.js")}'`;
const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));

/** The script with its first fault mended: it stops where a column of numbers has the text "NaN". */
const mended = join(folder, "mended.py");
const script = await readFile(join(peers, "script.py"), "utf8");
await writeFile(mended, script.replace("json.loads(line)", `json.loads(line.replace(b'"NaN"', b"NaN"))`));

const ways: Readonly<Record<string, (url: string, out: string) => string>> = {
  script: (url, out) => `'${python}' '${join(peers, "script.py")}' '${url}' '${out}'`,
  "script, mended": (url, out) => `'${python}' '${mended}' '${url}' '${out}'`,
  dlt: (url, out) => `'${python}' '${join(peers, "dlt_resource.py")}' '${url}' '${out}'`,
  runvault: (url, out) => `${runvault} archive --all --finished --gateway '${url}' --archive '${out}' -q`,
};

interface Stored {
  readonly rows: number;
  readonly priceType: string;
}

/** The rows of all runs below a folder of Parquet, and the type of a fill's price. */
async function storedIn(out: string): Promise<Stored> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  const ask = async (sql: string) => (await connection.runAndReadAll(sql)).getRows()[0]![0];
  // neither what dlt notes of itself, nor the files that tables/ links to
  const files = `(SELECT list(file) FROM glob('${out}/**/*.parquet') WHERE NOT contains(file, '/_dlt') AND NOT contains(file, '/data/'))`;
  try {
    const names = await ask(`SELECT string_agg('''' || f || '''') FROM (SELECT unnest(${files}) f)`);
    const fills = await ask(
      `SELECT string_agg('''' || f || '''') FROM (SELECT unnest(${files}) f) WHERE contains(f, 'fills')`,
    );
    const rows = await ask(`SELECT sum(num_rows)::INTEGER FROM parquet_file_metadata([${names}])`);
    const priceType = await ask(`SELECT typeof(price) FROM read_parquet([${fills}]) LIMIT 1`);
    return { rows: Number(rows), priceType: String(priceType) };
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** One way, over a new gateway; null if it failed. */
async function run(name: string, world: readonly string[]): Promise<(Timed & Stored) | null> {
  await using gateway = await simulate(world);
  const out = join(folder, "out");
  await rm(out, { recursive: true, force: true });
  await mkdir(out);
  // dlt keeps its state at home
  const command = `export HOME='${folder}' DLT_TELEMETRY=0 RUNTIME__DLTHUB_TELEMETRY=false; ${ways[name]!(gateway.url, out)}`;
  try {
    return { ...(await timed(`{ ${command}; } 2> '${folder}/errors'`, folder)), ...(await storedIn(out)) };
  } catch {
    const errors = await readFile(join(folder, "errors"), "utf8");
    process.stdout.write(`${name} stopped: ${errors.trim().split("\n").at(-1)}\n`);
    return null;
  } finally {
    await rm(join(folder, ".dlt"), { recursive: true, force: true });
  }
}

/** A Python with the peers, made once. */
function installed(): string {
  const home = join(tmpdir(), "runvault-bench-peers");
  const found = join(home, "bin", "python");
  if (existsSync(found)) return found;
  execFileSync("python3", ["-m", "venv", home], { stdio: "inherit" });
  execFileSync(found, ["-m", "pip", "install", "-q", "dlt[parquet]==1.31.0", "requests", "pyarrow"], {
    stdio: "inherit",
  });
  return found;
}

const runs = ["--seed", "7", "--instances", "2", "--runs", "2"];
const cut = [...runs, "--rows", "2000", "--fault", "cut-clean@fills:100"];
try {
  process.stdout.write("way             wall s  processor s  peak MB     rows  price\n");
  for (const name of Object.keys(ways)) {
    const done = await run(name, [...runs, "--rows", values.rows]);
    if (done === null) continue;
    process.stdout.write(
      `${name.padEnd(16)}${done.seconds.toFixed(1).padStart(6)}${done.processorSeconds.toFixed(1).padStart(13)}${done.peakMb
        .toFixed(0)
        .padStart(9)}${String(done.rows).padStart(9)}  ${done.priceType}\n`,
    );
  }
  process.stdout.write(
    "\nrows stored where one answer ends early, as if complete, and the exit status is 0\n",
  );
  for (const name of Object.keys(ways).filter((each) => each !== "script")) {
    const [whole, short] = [await run(name, cut.slice(0, -2)), await run(name, cut)];
    if (whole !== null && short !== null)
      process.stdout.write(`${name.padEnd(16)}${short.rows} of ${whole.rows}\n`);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
