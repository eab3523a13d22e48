// npm run mutants [-- NAME...]: puts each bug of test/mutants into a copy of the project, where the tests have to find it.
// npm run check:mutants: whether each can still be put in, and names a test file that exists.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, cp, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { parseArgs } from "node:util";

const project = join(import.meta.dirname, "..");
const patches = join(project, "test/mutants");
/** Mutants that there have to be, and how many of them `npm test` has to find. */
const wanted = { all: 40, npmTest: 32 };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: "boolean", default: false } },
});
const known = (await readdir(patches)).map((file) => file.replace(/\.patch$/, "")).sort();
const stranger = positionals.find((name) => !known.includes(name));
if (stranger !== undefined) throw new Error(`no mutant is called ${stranger}; there are ${known.join(", ")}`);
const names = positionals.length === 0 ? known : positionals;

/** Test files that were seen to pass without a mutant. */
const sound = new Set<string>();

interface Mutant {
  readonly name: string;
  /** The broken promise, in a sentence. */
  readonly breaks: string;
  /** The test file that finds it soonest. */
  readonly caughtBy: string;
}

const mutants = await Promise.all(names.map(read));
if (values.check) for (const { name } of mutants) patch(project, name, "--check");
else await findAll();

/** Reads the head of a patch. Throws where something is missing. */
async function read(name: string): Promise<Mutant> {
  const head = (await readFile(join(patches, `${name}.patch`), "utf8")).split("\n--- ", 1)[0]!;
  const [breaks = ""] = head.split("\n", 1);
  const [, caughtBy = ""] = /^caught by: (\S+)$/m.exec(head) ?? [];
  if (!/^promise: ./m.test(head)) throw new Error(`test/mutants/${name}.patch has no line "promise: …"`);
  if (!existsSync(join(project, caughtBy || "?"))) {
    throw new Error(`test/mutants/${name}.patch has no line "caught by: FILE" with a test file that exists`);
  }
  return { name, breaks, caughtBy };
}

async function findAll(): Promise<void> {
  const counts = { "npm test": 0, "test:all": 0, survived: 0 };
  const root = await copyOfProject();
  try {
    for (const mutant of mutants) {
      const begun = performance.now();
      const { by, says } = await find(root, mutant);
      counts[by] += 1;
      const seconds = ((performance.now() - begun) / 1000).toFixed(0);
      process.stdout.write(`${mutant.name} (${seconds} s)\n  ${mutant.breaks}\n  ${by}: ${says}\n`);
    }
  } finally {
    await rm(root, { recursive: true, force: true });
  }
  process.stdout.write(
    `${mutants.length} mutants: ${counts["npm test"]} found by npm test, ${counts["test:all"]} by test:all alone, ${counts.survived} survived\n`,
  );
  const tooFew = known.length < wanted.all || counts["npm test"] < wanted.npmTest;
  if (counts.survived > 0 || (positionals.length === 0 && tooFew)) process.exitCode = 1;
}

/** The project as it is here, committed or not, in its own folder. */
async function copyOfProject(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "runvault-mutant-"));
  // some tests start programs as another user
  await chmod(root, 0o755);
  const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const files = execFileSync("git", list, { cwd: project, encoding: "utf8" }).split("\0");
  for (const file of files) {
    const path = join(project, file);
    // git also lists files that were removed and not committed
    if (file !== "" && existsSync(path)) await cp(path, join(root, file));
  }
  await symlink(join(project, "node_modules"), join(root, "node_modules"));
  return root;
}

interface Outcome {
  readonly by: "npm test" | "test:all" | "survived";
  readonly says: string;
}

/** Runs the test file that a mutant names, and every test where that one does not find it. */
async function find(root: string, { name, caughtBy }: Mutant): Promise<Outcome> {
  patch(root, name);
  try {
    const named = await firstFailure(root, caughtBy);
    if (named !== undefined && (await passesWithout(root, name, caughtBy))) {
      return { by: commandOf(caughtBy), says: `${named.file}: ${named.test}` };
    }
    for (const projects of [["rooms", "contract", "system"], ["all"]]) {
      const failed = await firstFailure(root, ...projects.map((each) => `--project=${each}`));
      if (failed === undefined) continue;
      // among all of them one may have failed for another reason
      const again = await firstFailure(root, failed.file);
      if (again === undefined || !(await passesWithout(root, name, failed.file))) continue;
      const says = `${failed.file}: ${failed.test} (its patch names ${caughtBy}, which does not find it)`;
      return { by: commandOf(failed.file), says };
    }
    return { by: "survived", says: "no test finds it" };
  } finally {
    patch(root, name, "--reverse");
  }
}

function commandOf(file: string): "npm test" | "test:all" {
  return file.startsWith("test/all/") ? "test:all" : "npm test";
}

/** Whether a test file passes without the mutant: one that fails because something is missing would seem to find every mutant. */
async function passesWithout(root: string, name: string, file: string): Promise<boolean> {
  if (sound.has(file)) return true;
  patch(root, name, "--reverse");
  const without = await firstFailure(root, file);
  patch(root, name);
  if (without === undefined) sound.add(file);
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

/** The part used here of vitest's report as JSON. */
interface Report {
  readonly testResults: readonly {
    readonly name: string;
    /** Why the file as a whole failed. */
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** Runs the tests that `which` selects, until one fails; undefined if none does. */
async function firstFailure(
  root: string,
  ...which: readonly string[]
): Promise<{ file: string; test: string } | undefined> {
  const file = join(root, "report.json");
  const args = [
    ...["vitest", "run", ...which],
    ...["--bail=1", "--cache=false", "--reporter=json", `--outputFile=${file}`],
  ];
  // a test that fails because something is missing on this machine would seem to find every mutant
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
