import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { randomFrom } from "../../../src/simulator/random.ts";
import { buildArchive } from "../../fixtures/archive/query-archive.ts";
import { attackSeed, attackSize } from "../../fixtures/attack/attack-size.ts";
import { type Callable, callables, forbidden, hostileStatement } from "../../fixtures/attack/statements.ts";
import { start } from "../../fixtures/command/command-process.ts";
import { peakMib } from "../../fixtures/command/process-tree.ts";

const whole = 500;
/** What the process of a statement may take: twice --memory, what it holds idle, and its thread. */
const mostMib = 2 * 128 + 730 + 16;
/** --timeout, two seconds more, and the time to start, which a busy machine stretches. */
const mostSeconds = 1 + 2 + 10;

let built: Awaited<ReturnType<typeof buildArchive>>;
let temporary: string;
beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 300 } } },
  ]);
  temporary = await mkdtemp(join(tmpdir(), "runvault-attack-"));
});
afterAll(async () => {
  await built.dispose();
  await rm(temporary, { recursive: true, force: true });
});

const forms = ["csv", "arrow", "parquet", "vertical"];

function ask(...more: string[]) {
  const limits = ["--memory", "128MB", "--timeout", "1s", "--threads", "1"];
  return start(["query", "--archive", built.dir, ...limits, ...more, "-"], {
    TMPDIR: temporary,
    SECRET_TOKEN: "this-must-not-be-told",
  });
}

test("statements that take too much, crash, or reach outside", async () => {
  const listing = ask("--format", "json");
  listing.child.stdin.end(callables);
  const functions = JSON.parse((await listing.finished).stdout) as Callable[];
  expect(functions.length).toBeGreaterThan(400);

  const random = randomFrom(`statements ${attackSeed}`);
  for (let n = attackSize(whole); n > 0; n--) {
    const sql = hostileStatement(random, functions);
    const startedMs = performance.now();
    const { child, finished } = ask("--format", forms[n % forms.length]!);
    child.stdin.end(sql);
    const peak = await peakMib(child.pid!, finished);
    const { status, stdout, stderr } = await finished;
    const about = `seed ${attackSeed}: ${sql.slice(0, 300)}\n${stderr.slice(0, 1000)}`;
    expect([0, 2], about).toContain(status);
    expect(stderr, about).not.toMatch(/bug in runvault|this-must-not-be-told/);
    expect(`${stdout}${stderr}`, about).not.toMatch(/root:x:0|this-must-not-be-told/);
    if (forbidden.includes(sql)) expect({ status, stdout }, about).toEqual({ status: 2, stdout: "" });
    expect(peak, about).toBeLessThan(mostMib);
    expect((performance.now() - startedMs) / 1000, about).toBeLessThan(mostSeconds);
    expect(await readdir(temporary), about).toEqual([]);
  }
}, 3_600_000);
