import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";

let copy: string;

beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), "runvault-test-"));
  for (const name of ["src", "package.json", "tsconfig.json", ".dependency-cruiser.cjs"])
    await cp(inProject(name), join(copy, name), { recursive: true });
  await symlink(inProject("node_modules"), join(copy, "node_modules"));
});
afterAll(() => rm(copy, { recursive: true, force: true }));

/** What the check says of the sources with one more file. */
async function checkWith(
  file: string,
  imported: string,
): Promise<{ status: number | null; rules: string[] }> {
  const path = join(copy, file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `import "${imported}";\n`);
  const program = inProject("node_modules/.bin/depcruise");
  const { status, stdout } = spawnSync(program, ["--config", ".dependency-cruiser.cjs", "src"], {
    cwd: copy,
    encoding: "utf8",
  });
  await rm(path);
  return { status, rules: [...stdout.matchAll(/^ {2}error ([^:]+):/gm)].map(([, rule]) => rule!) };
}

test.each([
  ["a room by its door", "src/library/planted.ts", "../archive/archive.ts", []],
  [
    "a room past its doors",
    "src/library/planted.ts",
    "../extract/plan/plan.ts",
    ["extract/plan-by-its-doors"],
  ],
  [
    "another folder's own",
    "src/archive/read/planted.ts",
    "../verify/verify-rows.ts",
    ["archive/verify-within-its-room"],
  ],
  [
    "against the order",
    "src/archive/read/planted.ts",
    "../../extract/run-watcher.ts",
    ["archive-looks-back-only"],
  ],
  ["out of a folder without doors", "src/archive/odd/planted.ts", "../layout.ts", ["every-folder-has-doors"]],
  [
    "faults into the server",
    "src/serve/planted.ts",
    "../faults/fault.ts",
    ["faults-are-for-simulate", "serve-looks-back-only"],
  ],
])("an import %s", async (_, file, imported, rules) => {
  const found = await checkWith(file, imported);
  expect(found.rules.sort()).toEqual(rules);
  expect(found.status === 0).toBe(rules.length === 0);
});
