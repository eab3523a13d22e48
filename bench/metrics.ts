// CPU time, wall time and peak memory of `runvault metrics` over a large run, by day and by row of equity, beside
// what quantstats' reports.html takes with pandas on the same series, and its matches compared with SQL for the same.
//   npm run bench -- metrics [--fills 1000000] [--books 10000000] [--equity 10000000] [--orders 0] [--factors 0]
//     [--memory 1GB] [--python python3] [--archive DIR]
// `--python` has pandas, pyarrow or duckdb, and quantstats; without it the peer is left out.
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { matchesSql } from "../test/fixtures/trades/matches-sql.ts";
import { largeArchive } from "./large-archive.ts";
import { type Timed, timed } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "metrics"),
  options: {
    fills: { type: "string", default: "1000000" },
    books: { type: "string", default: "10000000" },
    equity: { type: "string", default: "10000000" },
    orders: { type: "string", default: "0" },
    factors: { type: "string", default: "0" },
    python: { type: "string" },
    archive: { type: "string" },
    memory: { type: "string", default: "1GB" },
  },
});
const runvault = `'${process.execPath}' '${join(import.meta.dirname, "..", "dist", "cli", "main.js")}'`;
const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));
try {
  const archive = values.archive ?? join(folder, "archive");
  const counts = {
    ...{ fills: Number(values.fills), order_book: Number(values.books), equity: Number(values.equity) },
    ...{ bars: Number(values.equity), events: 1 },
    ...(Number(values.orders) > 0 ? { orders: Number(values.orders) } : {}),
    ...(Number(values.factors) > 0 ? { factors: Number(values.factors) } : {}),
  };
  if (values.archive === undefined) await largeArchive(archive, counts);
  const run = "large/1";
  const tell = (name: string, { seconds, processorSeconds, peakMb }: Timed) =>
    process.stdout.write(
      `${name.padEnd(44)} ${processorSeconds.toFixed(1)} processor s, ${seconds.toFixed(1)} s, ${peakMb.toFixed(0)} MB\n`,
    );
  for (const session of ["utc", "bars"]) {
    tell(
      `metrics --session ${session}`,
      await timed(
        `${runvault} metrics ${run} --archive '${archive}' --session ${session} --memory ${values.memory} --json`,
        folder,
      ),
    );
  }
  tell(
    "report --no-reconcile",
    await timed(
      `${runvault} report ${run} --archive '${archive}' --no-reconcile --memory ${values.memory} --out '${join(folder, "report.html")}'`,
      folder,
    ),
  );
  const macro = (session: string) => `FROM performance('large', '1', session := '${session}')`;
  for (const session of ["utc", "bars"]) {
    tell(
      `query performance, ${session}`,
      await timed(
        `${runvault} query "${macro(session)}" --archive '${archive}' --memory ${values.memory} --format csv`,
        folder,
      ),
    );
  }
  const found = "SELECT entry_seq, exit_seq, side = 'LONG', quantity, gross_pnl FROM matches";
  const apart = `WITH own AS (${matchesSql("fills")}) SELECT (SELECT count(*) FROM own) AS matches,
    (SELECT count(*) FROM (FROM own EXCEPT ALL ${found})) + (SELECT count(*) FROM (${found} EXCEPT ALL FROM own)) AS differing`;
  await writeFile(join(folder, "apart.sql"), apart);
  const answer = join(folder, "apart.csv");
  tell(
    "matches against SQL of their own",
    await timed(
      `${runvault} query --file '${join(folder, "apart.sql")}' --archive '${archive}' --memory 3GB --out '${answer}'`,
      folder,
    ),
  );
  process.stdout.write(`  ${(await readFile(answer, "utf8")).trim().replace("\n", ": ")}\n`);
  if (values.python !== undefined) {
    const series = join(folder, "series.csv");
    const page = join(folder, "page.html");
    for (const [session, statement, returns] of [
      ["utc", "SELECT ts, ret AS value FROM session_returns('large', '1', session := 'utc')", "series"],
      // of as many points as do not fit into `--memory` by session
      [
        "bars",
        "SELECT ts_event AS ts, equity AS value FROM equity_f ORDER BY ts_event",
        "series.pct_change().dropna()",
      ],
    ] as const) {
      await timed(
        `${runvault} query "${statement}" --archive '${archive}' --memory ${values.memory} --timeout 10m -o '${series}' --force`,
        folder,
      );
      const program = [
        "import matplotlib; matplotlib.use('Agg')",
        "import pandas as pd, quantstats as qs",
        `series = pd.read_csv('${series}', parse_dates=['ts'], index_col='ts')['value'].tz_localize(None)`,
        `qs.reports.html(${returns}, output='${page}')`,
      ].join("\n");
      await writeFile(join(folder, "peer.py"), program);
      await rm(page, { force: true });
      // with limited memory and time, whether it finishes or not
      const bounded = `ulimit -v ${12 * 2 ** 20}; timeout 15m '${values.python}' '${join(folder, "peer.py")}'`;
      tell(
        `quantstats reports.html, ${session}`,
        await timed(`(${bounded}) > /dev/null 2>&1 || true`, folder),
      );
      const size = await stat(page).then(
        ({ size: bytes }) => `a page of ${(bytes / 1e3).toFixed(0)} kB`,
        () => "no page",
      );
      process.stdout.write(`  ${size}\n`);
    }
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
