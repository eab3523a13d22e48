import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { randomFrom } from "../../../src/simulator/world/random.ts";
import { buildArchive } from "../../fixtures/archive/query-archive.ts";
import { type Callable, callables, forbidden, hostileStatement } from "../../fixtures/attack/statements.ts";
import { start } from "../../fixtures/command/command-process.ts";
import { peakMib } from "../../fixtures/command/process-tree.ts";
import { trialCount, trialSeed } from "../../fixtures/trials/trials.ts";

/** What the process of a statement may take: twice --memory, what it holds idle, and its thread. */
const mostMib = 2 * 128 + 730 + 16;
/** --timeout, two seconds more, and the time to start, which a busy machine stretches. */
const mostSeconds = 1 + 2 + 30;

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
const files = ["csv", "ndjson", "parquet", "arrow", "json"];
const limits = ["--memory", "128MB", "--timeout", "1s", "--threads", "1"];

function run(command: string, ...more: string[]) {
  return start([command, "--archive", built.dir, ...limits, ...more], {
    TMPDIR: temporary,
    SECRET_TOKEN: "this-must-not-be-told",
  });
}

const ask = (...more: string[]) => run("query", ...more, "-");

/** What holds of every process, whatever it was asked. */
async function held({ child, finished }: ReturnType<typeof start>, statuses: readonly number[], sql: string) {
  const peak = await peakMib(child.pid!, finished);
  const { status, stdout, stderr } = await finished;
  const about = `seed ${trialSeed}: ${sql.slice(0, 300)}\n${stderr.slice(0, 1000)}`;
  expect(statuses, about).toContain(status);
  expect(stderr, about).not.toMatch(/bug in runvault|this-must-not-be-told/);
  expect(`${stdout}${stderr}`, about).not.toMatch(/root:x:0|this-must-not-be-told/);
  expect(peak, about).toBeLessThan(mostMib);
  expect(await readdir(temporary), about).toEqual([]);
  return { status, stdout, about };
}

let functions: Callable[];
beforeAll(async () => {
  const listing = ask("--format", "json");
  listing.child.stdin.end(callables);
  functions = JSON.parse((await listing.finished).stdout) as Callable[];
  expect(functions.length).toBeGreaterThan(400);
}, 60_000);

test("statements that take too much, crash, or reach outside", async () => {
  const random = randomFrom(`statements ${trialSeed}`);
  for (let n = trialCount(10); n > 0; n--) {
    const sql = hostileStatement(random, functions);
    const startedMs = performance.now();
    const asked = ask("--format", forms[n % forms.length]!);
    asked.child.stdin.end(sql);
    const { status, stdout, about } = await held(asked, [0, 2], sql);
    if (forbidden.includes(sql)) expect({ status, stdout }, about).toEqual({ status: 2, stdout: "" });
    expect((performance.now() - startedMs) / 1000, about).toBeLessThan(mostSeconds);
  }
}, 3_600_000);

test("the same into a file: whole under its name, or not there, whoever ends the process", async () => {
  const random = randomFrom(`statements into files ${trialSeed}`);
  const folder = await mkdtemp(join(tmpdir(), "runvault-attack-"));
  try {
    for (let n = trialCount(2); n > 0; n--) {
      const sql = hostileStatement(random, functions);
      const name = `answer.${files[random.below(files.length)]!}`;
      const file = join(folder, name);
      const isThere = random.below(4) === 0;
      const isKilled = random.below(4) === 0;
      if (isThere) await writeFile(file, "of somebody else");
      const asked = ask("--out", file);
      asked.child.stdin.end(sql);
      if (isKilled) {
        const killing = setTimeout(() => asked.child.kill("SIGKILL"), random.below(1500));
        await asked.finished;
        clearTimeout(killing);
        // a statement's process that has lost its parent ends by itself, and takes its folder along
        await expect.poll(() => readdir(temporary), { timeout: 10_000 }).toEqual([]);
        const found = (await readdir(folder)).includes(name);
        if (isThere) expect(await readFile(file, "utf8")).toBe("of somebody else");
        else if (found) expect(await isWhole(file), sql.slice(0, 300)).toBe(true);
      } else {
        const { status, stdout, about } = await held(asked, [0, 2], sql);
        expect(stdout, about).toBe("");
        if (isThere)
          expect({ status, text: await readFile(file, "utf8") }).toEqual({
            status: 2,
            text: "of somebody else",
          });
        else expect(await readdir(folder), about).toEqual(status === 0 ? [name] : []);
        if (status === 0) expect(await isWhole(file), about).toBe(true);
      }
      for (const left of await readdir(folder)) await rm(join(folder, left));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 3_600_000);

/** Whether a file ends as one of its kind does, which half of one does not. */
async function isWhole(file: string): Promise<boolean> {
  const bytes = await readFile(file);
  if (file.endsWith(".parquet")) return bytes.subarray(-4).toString() === "PAR1";
  if (file.endsWith(".arrow")) return bytes.subarray(-6).toString() === "ARROW1";
  if (file.endsWith(".json")) return Array.isArray(JSON.parse(bytes.toString()));
  return bytes.length === 0 || bytes.at(-1) === 10;
}

test("a shell that reads such statements ends with the first that fails", async () => {
  const random = randomFrom(`shell ${trialSeed}`);
  for (let n = trialCount(2); n > 0; n--) {
    const statements = Array.from({ length: 1 + random.below(4) }, () => hostileStatement(random, functions));
    const commands = [".help", ".timing on", ".format vertical", ".format nothing", ".output /etc/x/y", "."];
    const lines = statements.flatMap((sql) => [commands[random.below(30)] ?? "-- none", `${sql};`]);
    const startedMs = performance.now();
    const asked = run("shell", "--format", "csv");
    asked.child.stdin.on("error", () => {});
    asked.child.stdin.end(lines.join("\n"));
    const { status, about } = await held(asked, [0, 2, 5], lines.join("\n"));
    if (statements.some((sql) => forbidden.includes(sql))) expect(status, about).not.toBe(0);
    expect((performance.now() - startedMs) / 1000, about).toBeLessThan(statements.length * mostSeconds);
  }
}, 3_600_000);
