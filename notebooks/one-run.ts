// One run in figures, out of an archive: what one-run.ipynb shows, in TypeScript. In a project that has runvault:
//
//   node one-run.ts ARCHIVE [INSTANCE RUN]
//
// Without a run it takes the one that was started last of those that have ended.
import { openArchive } from "runvault/archive";
import { openQuery } from "runvault/query";

const [folder = "archive", instance, id] = process.argv.slice(2);
if (instance !== undefined && id === undefined) throw new Error("name a run by two words, INSTANCE RUN");

/** The run that was named, else the newest that has ended. */
async function chosenRun(): Promise<{ readonly instanceId: string; readonly runId: string }> {
  if (instance !== undefined && id !== undefined) return { instanceId: instance, runId: id };
  await using query = await openQuery(folder);
  const newest =
    "SELECT instance_id, run_id FROM runs WHERE final ORDER BY started DESC, run_id DESC LIMIT 1";
  for await (const row of query.rows(newest)) {
    return { instanceId: String(row.instance_id), runId: String(row.run_id) };
  }
  throw new Error(`${folder} has no run that has ended`);
}

/** SQL text: quotes are doubled. */
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

const run = await chosenRun();
const archive = await openArchive(folder);
let isThere = false;
for await (const { runId, state, tables } of archive.runs(run.instanceId)) {
  if (runId !== run.runId) continue;
  isThere = true;
  console.log(`${run.instanceId}/${runId}  ${state}, ${tables.fills?.rows ?? 0} fills`);
}
if (!isThere) throw new Error(`${folder} has no run ${run.instanceId}/${run.runId}`);

// one thread: sums of doubles come in one order, and so with the same digits every time
await using query = await openQuery(folder, { threads: 1 });
const of = `${literal(run.instanceId)}, ${literal(run.runId)}`;
const where = `WHERE instance_id = ${literal(run.instanceId)} AND run_id = ${literal(run.runId)}`;

/** Prints the rows of a SELECT under a heading. */
async function show(heading: string, sql: string): Promise<void> {
  console.log(`\n${heading}`);
  console.table(await Array.fromAsync(query.rows(sql)));
}

await show(
  "Figures of every equity row",
  `SELECT metric, value, unit, n, reason FROM performance(${of}, session := 'bars')`,
);
await show(
  "The deepest drawdowns",
  `SELECT rank, depth, peak_ts, trough_ts, recovery_ts FROM drawdowns(${of}, session := 'bars') WHERE rank <= 5`,
);
await show("Months", `SELECT year, month, ret, n, is_partial FROM monthly(${of})`);
// sums of decimals are exact, and come as text with every digit
await show(
  "Round trips by symbol, flat to flat, net of fees",
  `SELECT symbol, currency, count(*) AS trades, count(*) FILTER (net_pnl > 0) AS winners, sum(net_pnl) AS net_pnl
   FROM round_trips ${where} AND NOT is_open GROUP BY ALL ORDER BY ALL`,
);
await show("Open at the end", `SELECT symbol, quantity, value, unrealized_pnl FROM positions ${where}`);
