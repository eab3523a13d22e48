import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { start } from "../fixtures/command/command-process.ts";
import { inProject } from "../fixtures/command/project.ts";

const document = inProject("docs/library.md");
const text = await readFile(document, "utf8");
const gateway = "http://127.0.0.1:8080";

/** Each example with what it prints. */
const examples = [...text.matchAll(/^```ts\n(.*?)^```\n\n```text\n(.*?)^```/gms)].map(
  ([, code, output], index) => ({
    title: /^import .* from "(.*)";$/m.exec(code!)![1],
    file: `example-${index + 1}.ts`,
    code: code!,
    output: output!,
  }),
);

describe("docs/library.md, in a project that has the package", () => {
  let folder: string;
  let url: string;
  let simulator: ReturnType<typeof start>;

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "runvault-test-")));
    await mkdir(join(folder, "node_modules"));
    await symlink(inProject("."), join(folder, "node_modules", "runvault"));
    await symlink(inProject("node_modules/@types"), join(folder, "node_modules", "@types"));
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const compilerOptions = {
      ...{ strict: true, module: "nodenext", target: "es2024", lib: ["es2024", "esnext.disposable"] },
      ...{ types: ["node"], noEmit: true, exactOptionalPropertyTypes: true },
    };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
    for (const { file, code } of examples) await writeFile(join(folder, file), code);
    simulator = start(["simulate", "--rows", "2000", "--runs", "2"]);
    url = (await simulator.firstLine()).replace(/\/api\/v1$/, "");
  });
  afterAll(async () => {
    simulator?.child.kill();
    await rm(folder, { recursive: true, force: true });
  });

  test("has an example of each entry point", async () => {
    const { exports } = JSON.parse(await readFile(inProject("package.json"), "utf8"));
    const entries = Object.keys(exports).filter((name) => name !== "./package.json");
    const imported = new Set(
      [...text.matchAll(/^import .* from "runvault\/(.*)";$/gm)].map(([, name]) => `./${name}`),
    );
    expect([...imported].sort()).toEqual(entries.sort());
  });

  test("every example is typed", () => {
    execFileSync(process.execPath, [inProject("node_modules/typescript/bin/tsc"), "-p", folder], {
      encoding: "utf8",
    });
  });

  test.each(examples)("$file prints what stands below it", async ({ file, code, output }) => {
    await writeFile(join(folder, file), code.replaceAll(gateway, url));
    const printed = execFileSync(process.execPath, [file], {
      cwd: folder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    expect(printed).toBe(output);
  });
});
