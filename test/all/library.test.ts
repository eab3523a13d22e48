import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/library/archive.ts";
import { archiveRuns } from "../../src/library/extract.ts";
import { retryPolicy } from "../../src/model/retry/retry-policy.ts";
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
    const compiler = inProject("node_modules/@typescript/native/bin/tsc");
    const { stdout, status } = spawnSync(process.execPath, [compiler, "-p", folder], { encoding: "utf8" });
    expect(status, stdout).toBe(0);
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

  test("a job that cannot go on says so, behind the run that met it", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    const told: string[] = [];
    const runs = ["a", "b", "c"].map((runId) => ({ instanceId: "alpha-1", runId }));
    const retry = retryPolicy({ retries: 0 });
    const gateway = { baseUrl: `http://127.0.0.1:${port}`, retry };
    const archiving = async () => {
      const archive = join(folder, "unreachable");
      for await (const { runId, error } of archiveRuns({ gateway, archive, runs }))
        told.push(`${runId} ${error?.code}`);
    };
    await expect(archiving()).rejects.toMatchObject({ code: "unreachable" });
    expect(told).toEqual(["a unreachable"]);
  });

  test("a signal ends the job with its reason, and makes no run fail", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const told: string[] = [];
    const options = { gateway: url, archive: join(folder, "stopped"), signal: controller.signal };
    const archiving = async () => {
      for await (const { state, error } of archiveRuns(options)) {
        told.push(`${state} ${error?.code}`);
        controller.abort(reason);
      }
    };
    await expect(archiving()).rejects.toBe(reason);
    expect(told).toEqual(["COMPLETE undefined"]);
  });

  test("rows that are not proven are told of by the job, and are none of a committed table", async () => {
    const odd = start(["simulate", "--rows", "2000", "--runs", "1", "--fault", "facts-disagree@fills:1"]);
    try {
      const gateway = (await odd.firstLine()).replace(/\/api\/v1$/, "");
      const options = { gateway, archive: join(folder, "unproven") };
      const told: unknown[] = [];
      for await (const { tables } of archiveRuns(options)) told.push(tables.fills);
      const archive = await openArchive(options.archive);
      for await (const { tables } of archive.runs()) told.push(tables.fills);
      const state = "INCOMPLETE";
      expect(told).toEqual([
        { state, rows: 160 },
        { state, rows: 0 },
      ]);
    } finally {
      odd.child.kill();
    }
  });
});
