import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";

let copy: string;

beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), "runvault-test-"));
  for (const name of ["src", "package.json", "tsconfig.json", ".dependency-cruiser.cjs"])
    await cp(inProject(name), join(copy, name), { recursive: true });
  await symlink(inProject("node_modules"), join(copy, "node_modules"));
});
afterAll(() => rm(copy, { recursive: true, force: true }));

interface Planted {
  readonly what: string;
  /** The file that imports, in a folder of `src/`. */
  readonly file: string;
  readonly imported: string;
  readonly rules: readonly string[];
}

const good: Planted = {
  what: "a room by its door",
  file: "src/library/planted-by-door.ts",
  imported: "../archive/archive.ts",
  rules: [],
};
const bad: readonly Planted[] = [
  {
    what: "a room past its doors",
    file: "src/library/planted-past-doors.ts",
    imported: "../extract/plan/plan.ts",
    rules: ["extract/plan-by-its-doors"],
  },
  {
    what: "another folder's own",
    file: "src/archive/read/planted-own.ts",
    imported: "../verify/verify-rows.ts",
    rules: ["archive/verify-within-its-room"],
  },
  {
    what: "against the order",
    file: "src/archive/read/planted-against.ts",
    imported: "../../extract/run-watcher.ts",
    rules: ["archive-looks-back-only"],
  },
  {
    what: "out of a folder without doors",
    file: "src/archive/odd/planted-odd.ts",
    imported: "../layout.ts",
    rules: ["every-folder-has-doors"],
  },
  {
    what: "faults into the server",
    file: "src/serve/planted-faults.ts",
    imported: "../faults/fault.ts",
    rules: ["faults-are-for-simulate", "serve-looks-back-only"],
  },
];

/** What the check says of the sources with these files beside them: each broken rule with the file that breaks it. */
async function checkWith(
  planted: readonly Planted[],
): Promise<{ status: number | null; broken: (readonly [rule: string, file: string])[] }> {
  for (const { file, imported } of planted) {
    const path = join(copy, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, `import "${imported}";\n`);
  }
  const program = inProject("node_modules/.bin/depcruise");
  const { status, stdout } = spawnSync(program, ["--config", ".dependency-cruiser.cjs", "src"], {
    cwd: copy,
    encoding: "utf8",
  });
  const told = stdout.matchAll(/^ {2}error ([^:]+): (\S+)/gm);
  return { status, broken: [...told].map(([, rule, file]) => [rule!, file!] as const) };
}

test("an import of a room by its door is none that the check refuses", async () => {
  expect(await checkWith([good])).toEqual({ status: 0, broken: [] });
});

describe("an import", () => {
  let found: Awaited<ReturnType<typeof checkWith>>;
  beforeAll(async () => {
    // all in one call, which reads every source anew
    found = await checkWith([good, ...bad]);
  });

  test.each(bad)("$what is refused by its rule", ({ file, rules }) => {
    const own = found.broken.filter(([, from]) => from === file).map(([rule]) => rule);
    expect(own.sort()).toEqual(rules);
  });

  test("that is wrong makes the check fail, and no other is told", () => {
    expect(found.status).not.toBe(0);
    expect(found.broken.filter(([, from]) => !bad.some(({ file }) => file === from))).toEqual([]);
  });
});
