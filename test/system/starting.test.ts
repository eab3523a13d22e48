import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { buildArchive } from "../fixtures/archive/query-archive.ts";
import { start } from "../fixtures/command/command-process.ts";
import { inProject } from "../fixtures/command/project.ts";
import { someOf } from "../fixtures/trials/cases.ts";

let folder: string;
let built: Awaited<ReturnType<typeof buildArchive>>;
beforeAll(async () => {
  built = await buildArchive([
    { instanceId: "a", runId: "1", tables: { fills: { state: "COMPLETE", rows: 3 } } },
  ]);
});
afterAll(() => built.dispose());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
  return () => rm(folder, { recursive: true, force: true });
});

describe("a command loads what it uses", () => {
  // the ecosystem's largest first: each alone takes longer to load than a command may to start
  const heavy = [
    "@duckdb/node-api",
    "@bufbuild/protobuf",
    "undici",
    "fastify",
    "apache-arrow",
    "pino",
    "yaml",
    "croner",
    "nodemailer",
  ];
  const languages = "zod's languages";
  /** What job files are read with. */
  const reading = ["yaml", "croner"];
  const checked = ["gateway.url=http://h", "gateway.token={ env: PATH }", "run=a/b"].flatMap((set) => [
    "--set",
    set,
  ]);

  const commands: [name: string, args: readonly string[], unused: readonly string[]][] = [
    ["--version", ["--version"], [...heavy, "zod", "cli-progress"]],
    ["--help", ["--help"], [...heavy, "zod", "cli-progress"]],
    ["completing a command", ["complete", "--", "ex"], [...heavy, "zod", "cli-progress"]],
    ["completing an option", ["complete", "--", "archive", "--f"], [...heavy, languages]],
    [
      "query, beside the process of its statement",
      ["query", "SELECT 1"],
      [...heavy, languages, "cli-progress"],
    ],
    ["runs", ["runs"], [...heavy, languages]],
    [
      "check",
      ["check", inProject("pipelines/archive-run.yaml"), ...checked],
      [...heavy.filter((name) => !reading.includes(name)), languages, "cli-progress"],
    ],
    ["schema", ["schema", "pipeline"], [...heavy.filter((name) => !reading.includes(name)), languages]],
  ];

  it.each(someOf(commands, 3))("%s", async (_, args, unused) => {
    const { main } = await modulesOf(args);
    expect(main).toContain("commander");
    expect(main.filter((name) => unused.includes(name) || name.startsWith("serve/"))).toEqual([]);
  });

  it("the process of a statement", async () => {
    const { apart } = await modulesOf(["query", "SELECT 1"]);
    expect(apart).toContain("@duckdb/node-api");
    const others = heavy.filter((name) => name !== "@duckdb/node-api");
    const converting = ["archive/convert/convert-segments.js", "archive/write/segment.js"];
    const unused = [...others, ...converting, languages, "commander", "cli-progress"];
    expect(apart.filter((name) => unused.includes(name))).toEqual([]);
  });

  /** What a command loads, and the process of its statement, if it has one. */
  async function modulesOf(args: readonly string[]): Promise<{ main: string[]; apart: string[] }> {
    const preload = ["--import", inProject("test/fixtures/command/told-modules.mjs")];
    const { finished } = start(args, {
      TOLD_MODULES: folder,
      NODE_OPTIONS: preload.join("="),
      RUNVAULT_ARCHIVE: built.dir,
    });
    const { status, stderr } = await finished;
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const told = async (program: string) => (await readFile(join(folder, program), "utf8")).split("\n");
    const names = await readdir(folder);
    return {
      main: await told("main"),
      apart: names.includes("query-apart") ? await told("query-apart") : [],
    };
  }
});

describe("an older Node", () => {
  it.each(someOf(["22.18.9", "20.20.2", "8.0.0"], 3))(
    "%s is told in one sentence, before anything is loaded",
    async (version) => {
      const preload = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'${version}'})`;
      const { finished } = start(["runs"], { NODE_OPTIONS: `--import=${preload}` });
      expect(await finished).toEqual({
        status: 2,
        stdout: "",
        stderr: `runvault: needs Node 22.19.0 or newer, and this is ${version}: run it with a newer Node\n`,
      });
    },
  );

  it.each(someOf(["22.19.0", "23.0.0", "24.1.0"], 3))("%s is new enough", async (version) => {
    const preload = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'${version}'})`;
    const { finished } = start(["--version"], { NODE_OPTIONS: `--import=${preload}` });
    expect(await finished).toMatchObject({ status: 0, stderr: "" });
  });
});

describe("what Node compiled", () => {
  const version = async () => {
    // Node keeps nothing where the tests told it to, then
    const { finished } = start(["--version"], { XDG_CACHE_HOME: folder }, [
      "env",
      "-u",
      "NODE_COMPILE_CACHE",
    ]);
    expect(await finished).toMatchObject({ status: 0, stderr: "" });
  };
  const compiled = () => join(folder, "runvault", "compiled");

  it("is kept where only this user can write, whatever the umask", async () => {
    await version();
    expect(await readdir(compiled())).not.toEqual([]);
    for (const path of [join(folder, "runvault"), compiled()]) {
      expect((await stat(path)).mode & 0o077).toBe(0);
    }
  });

  it("is not kept where others can write", async () => {
    await mkdir(compiled(), { recursive: true });
    await chmod(compiled(), 0o777);
    await version();
    expect(await readdir(compiled())).toEqual([]);
  });

  it("is not kept behind a link", async () => {
    const elsewhere = join(folder, "elsewhere");
    await mkdir(elsewhere);
    await mkdir(join(folder, "runvault"));
    await symlink(elsewhere, compiled());
    await version();
    expect(await readdir(elsewhere)).toEqual([]);
  });
});
