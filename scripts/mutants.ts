// npm run mutants [-- NAME...]: puts each bug of test/mutants into a copy of the project and has the tests find it.
// npm run check:mutants: whether each can still be put in.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, cp, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { parseArgs } from "node:util";

const project = join(import.meta.dirname, "..");
const patches = join(project, "test/mutants");
/** Mutants that the tests without processes have to find. */
const wantedFast = 7;
/** How often the tests are run where one fails that the mutant has nothing to do with. */
const tries = 3;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: "boolean", default: false } },
});
const known = (await readdir(patches)).map((file) => file.replace(/\.patch$/, "")).sort();
const stranger = positionals.find((name) => !known.includes(name));
if (stranger !== undefined) throw new Error(`no mutant is called ${stranger}; there are ${known.join(", ")}`);
const names = positionals.length === 0 ? known : positionals;

if (values.check) for (const name of names) patch(project, name, "--check");
else await findAll();

async function findAll(): Promise<void> {
  const counts = { fast: 0, system: 0, survived: 0 };
  for (const name of names) {
    const begun = performance.now();
    const root = await copyOfProject();
    try {
      const { by, says } = await find(root, name);
      counts[by] += 1;
      const seconds = ((performance.now() - begun) / 1000).toFixed(0);
      process.stdout.write(`${name} (${seconds} s)\n  ${await whatItBreaks(name)}\n  ${by}: ${says}\n`);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  }
  const { fast, system, survived } = counts;
  process.stdout.write(
    `caught by test:fast: ${fast}, by the system tests alone: ${system}, survived: ${survived}\n`,
  );
  if (survived > 0 || (positionals.length === 0 && fast < wantedFast)) process.exitCode = 1;
}

/** The project as it is here, committed or not, in a folder of its own. */
async function copyOfProject(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "runvault-mutant-"));
  // some tests start programs as another user
  await chmod(root, 0o755);
  const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const files = execFileSync("git", list, { cwd: project, encoding: "utf8" }).split("\0");
  for (const file of files) {
    const path = join(project, file);
    // git lists what is removed and not committed, too
    if (file !== "" && existsSync(path)) await cp(path, join(root, file));
  }
  await symlink(join(project, "node_modules"), join(root, "node_modules"));
  return root;
}

interface Outcome {
  readonly by: "fast" | "system" | "survived";
  readonly says: string;
}

/** Runs the tests until one finds the mutant. Throws where it does not compile. */
async function find(root: string, name: string): Promise<Outcome> {
  patch(root, name);
  execFileSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "inherit" });
  const others: string[] = [];
  for (const by of ["fast", "system"] as const) {
    for (let left = tries; left > 0; left--) {
      const failed = await firstFailure(root, `--project=${by === "fast" ? "!system" : "system"}`);
      if (failed === undefined) break;
      const says = `${failed.file}: ${failed.test}`;
      if (await failsByMutant(root, name, failed.file)) return { by, says };
      others.push(says);
    }
  }
  return {
    by: "survived",
    says: ["no test finds it", ...others.map((says) => `not by it: ${says}`)].join("; "),
  };
}

/** Whether a test file fails again with the mutant, and passes without it. */
async function failsByMutant(root: string, name: string, file: string): Promise<boolean> {
  if ((await firstFailure(root, file)) === undefined) return false;
  patch(root, name, "--reverse");
  const without = await firstFailure(root, file);
  patch(root, name);
  return without === undefined;
}

/** Applies a patch. Throws where it does not fit. */
function patch(root: string, name: string, ...options: string[]): void {
  const args = ["apply", ...options, join(patches, `${name}.patch`)];
  // else git takes a copy inside another repository for a part of it, and leaves the patch out
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(root) };
  const { status, stderr } = spawnSync("git", args, { cwd: root, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`test/mutants/${name}.patch does not fit src/ any more:\n${stderr}`);
}

/** What the first line of a patch says. */
async function whatItBreaks(name: string): Promise<string> {
  const text = await readFile(join(patches, `${name}.patch`), "utf8");
  return text.slice(0, text.indexOf("\n"));
}

/** The part used here of vitest's report as JSON. */
interface Report {
  readonly testResults: readonly {
    readonly name: string;
    /** Why the file as a whole failed. */
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** Runs the tests that `which` tells, until one fails; undefined where none does. */
async function firstFailure(
  root: string,
  which: string,
): Promise<{ file: string; test: string } | undefined> {
  const file = join(root, "report.json");
  const args = [
    "vitest",
    "run",
    which,
    "--bail=1",
    "--cache=false",
    "--reporter=json",
    `--outputFile=${file}`,
  ];
  // a test that fails for want of something on this machine would seem to find every mutant
  const { RUNVAULT_REQUIRE: _, ...env } = process.env;
  const { status } = spawnSync("npx", args, { cwd: root, env, stdio: ["ignore", "ignore", "inherit"] });
  if (status === 0) return undefined;
  const { testResults } = JSON.parse(await readFile(file, "utf8")) as Report;
  for (const { name, assertionResults } of testResults) {
    const failed = assertionResults.find((result) => result.status === "failed");
    if (failed !== undefined) return { file: relative(root, name), test: failed.fullName };
  }
  // a file that was given up for the failure of another has no message
  const broken = testResults.find(({ message }) => message !== "");
  if (broken !== undefined) return { file: relative(root, broken.name), test: broken.message };
  throw new Error("vitest failed, and names no test that did");
}
