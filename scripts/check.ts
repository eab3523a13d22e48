// npm run check: every `check:…` script of package.json, two at a time and in that order, and then the tests, which
// start with the last check. A check's output is printed when it ends, but not during the tests' output. Fails if any
// of them does; all are run.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import PQueue from "p-queue";

const project = join(import.meta.dirname, "..");
const { scripts } = JSON.parse(await readFile(join(project, "package.json"), "utf8")) as {
  readonly scripts: Readonly<Record<string, string>>;
};
const checks = Object.keys(scripts).filter((name) => name.startsWith("check:"));
/** Output of checks that ended during the tests. */
const held: string[] = [];
let isTesting = false;
const failed: string[] = [];

/**
 * Runs a script of package.json; returns what it printed where `stdio` is "pipe", below its name and the seconds it
 * took.
 */
async function run(name: string, stdio: "inherit" | "pipe"): Promise<string> {
  const startedMs = performance.now();
  const child = spawn(process.execPath, ["--run", name], { cwd: project, stdio: ["ignore", stdio, stdio] });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  }
  const [status] = (await once(child, "close")) as [number | null];
  if (status !== 0) failed.push(name);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  return `${name}: ${status === 0 ? "ok" : "failed"}, ${seconds} s\n${printed}`;
}

async function check(name: string): Promise<void> {
  const told = await run(name, "pipe");
  if (isTesting) held.push(told);
  else process.stdout.write(told);
}

async function test(): Promise<void> {
  isTesting = true;
  const told = await run("test:only", "inherit");
  process.stdout.write([...held.splice(0), told].join(""));
  isTesting = false;
}

const queue = new PQueue({ concurrency: 2 });
await Promise.all([...checks.map((name) => queue.add(() => check(name))), queue.add(test)]);
if (failed.length > 0) {
  process.stdout.write(`failed: ${failed.join(", ")}\n`);
  process.exitCode = 1;
}
