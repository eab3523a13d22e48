// @module-tag slow
import { chmod, cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { manifestText } from "../../src/archive/manifest/manifest.ts";
import { aboveBar } from "../../src/cli/output/progress.ts";
import { archiveWorld, smallWorld } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { inProject } from "../fixtures/command/project.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { hostile, hostileId, obeyed, startHostileGateway } from "../fixtures/source/hostile-texts.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";

let folder: string;
let gateway: Awaited<ReturnType<typeof startHostileGateway>>;
const fileNames = "\u001b[2K\rCOMPLETE\nalpha-1 COMPLETE\u202e";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-hostile-texts-"));
  gateway = await startHostileGateway();
  await runInside(["archive", "--all", "--finished", ...of("archive"), ...asked()]);
  for (const copy of ["before", "other"]) {
    await cp(join(folder, "archive"), join(folder, copy), { recursive: true });
  }
  await spoil(join(folder, "other"));
  const odd = { instanceId: `alpha${hostileId}`, runId: `r${hostileId}COMPLETE` };
  await archiveWorld(join(folder, "odd"), new ArraySource(odd, smallWorld(3, odd)), { tables: ["fills"] });
  gateway.alter("run-2", "fills", 0, { symbol: "OTHER" });
  await runInside(["archive", "--all", "--finished", ...of("altered"), ...asked()]);
});
afterAll(async () => {
  await gateway.close();
  await rm(folder, { recursive: true });
});

const of = (name: string) => ["--archive", join(folder, name)];
const asked = () => ["--gateway", gateway.url, "--retries", "0"];
const run = "momentum-1/run-2";
const oddRun = `alpha${hostileId}/r${hostileId}COMPLETE`;

/** Hostile texts in the manifests of an archive, in a segment, and in the names of files that are nobody's. */
async function spoil(archive: string): Promise<void> {
  for (const instance of await readdir(join(archive, "runs"))) {
    for (const name of await readdir(join(archive, "runs", instance))) {
      const file = join(archive, "runs", instance, name);
      const { sha256: _, ...manifest } = JSON.parse(await readFile(file, "utf8"));
      manifest.run.status = `FINISHED${hostile}`;
      manifest.source = `http://gateway${hostile}/api/v1`;
      manifest.tool = hostile;
      const { attempt } = manifest.tables.orders;
      attempt.error = { ...attempt.error, message: hostile, hint: hostile };
      attempt.notes = [hostile];
      await chmod(file, 0o644);
      await writeFile(file, manifestText(manifest));
    }
  }
  const data = join(archive, "data", "momentum-1", "run-2");
  const [fills] = (await readdir(data)).filter((name) => /^fills.*\.ndjson/.test(name));
  await rm(join(data, fills!));
  for (const place of [archive, data, join(archive, "tables", "fills", "momentum-1", "run-2")]) {
    await writeFile(join(place, fileNames), "");
    await writeFile(join(place, `${fileNames}.parquet`), "");
  }
}

/** Both streams of a command, which hold nothing that a terminal obeys and no forged line. */
async function told(args: readonly string[], more: Parameters<typeof runInside>[1] = {}): Promise<string> {
  const { stdout, stderr } = await runInside(args, more);
  expect({ args, stdout: obeyed(stdout), stderr: obeyed(stderr) }).toEqual({ args, stdout: [], stderr: [] });
  return `${stdout}\n${stderr}`;
}

describe("texts from outside are shown, and do nothing", () => {
  const shown = "\\u001b[2K\\rCOMPLETE\\nalpha-1";
  // the arguments, and whether such texts are known to be in what is told
  const commands: readonly (readonly [string, () => readonly string[], string?])[] = [
    ["archive", () => ["archive", "--all", "--finished", ...of("archive"), ...asked()], shown],
    ["archive, verbose", () => ["archive", run, "-v", ...of("archive"), ...asked(), "--recheck"], shown],
    [
      "archive, log as JSON",
      () => ["archive", run, "-v", "--log-format", "json", ...of("new"), ...asked()],
      shown,
    ],
    ["archive, debug", () => ["archive", "no/run", "--debug", ...of("archive"), ...asked()]],
    ["archive, over RPC", () => ["archive", run, ...of("rpc"), ...asked(), "--transport", "rpc"]],
    ["archive, a dry run", () => ["archive", run, "--dry-run", ...of("dry"), ...asked()], shown],
    [
      "archive, a run of such a name",
      () => ["archive", `a/b${hostile}`, ...of("archive"), ...asked()],
      shown,
    ],
    ["runs", () => ["runs", ...of("archive")], shown],
    ["runs, wide", () => ["runs", "--wide", ...of("archive")], shown],
    ["status", () => ["status", ...of("archive")]],
    ["info of another archive", () => ["status", ...of("other")], shown],
    ["info of such names", () => ["status", ...of("odd")], "alpha\\u202e"],
    [
      "rm by age of such names",
      () => ["rm", "--older-than", "0s", "--dry-run", ...of("odd")],
      "alpha\\u202e",
    ],
    ["runs of another archive", () => ["runs", ...of("other")], shown],
    ["runs of a gateway", () => ["runs", ...asked()], shown],
    ["runs of such an instance", () => ["runs", `a${hostile}`, ...of("archive")], shown],
    ["query", () => ["query", "SELECT DISTINCT symbol, venue FROM fills", ...of("archive")], shown],
    ["query, a column of such a name", () => ["query", `SELECT 1 AS "${hostile}"`, ...of("archive")], shown],
    ["query, what DuckDB says", () => ["query", `SELECT '${hostile}'::INTEGER`, ...of("archive")], shown],
    ["query, an explanation", () => ["query", "EXPLAIN SELECT symbol FROM fills", ...of("archive")]],
    ["query of such a table", () => ["query", `SELECT * FROM "${hostile}"`, ...of("archive")], shown],
    ["files", () => ["export", "--list", "fills", ...of("archive")]],
    [
      "files of such a run",
      () => ["export", "--list", "fills", "--run", `a/b${hostile}`, ...of("archive")],
      shown,
    ],
    [
      "export",
      () => ["export", "fills", "-f", "csv", "-o", join(folder, hostile), "--force", ...of("archive")],
      shown,
    ],
    [
      "export of such a table",
      () => ["export", `fills${hostile}`, "-f", "csv", "-o", "x", ...of("archive")],
      shown,
    ],
    ["verify", () => ["verify", "--deep", ...of("archive")]],
    ["verify of another archive", () => ["verify", ...of("other")], shown],
    [
      "verify against the gateway",
      () => ["verify", ...of("archive"), "--against", gateway.url, "--retries", "0"],
    ],
    ["verify, and repair", () => ["verify", "--repair", ...of("other")], shown],
    ["diff", () => ["maintain", "diff", join(folder, "before"), join(folder, "altered")], shown],
    ["rebuild", () => ["maintain", "rebuild", ...of("archive")]],
    ["rebuild of another archive", () => ["maintain", "rebuild", ...of("other")]],
    ["rm of such a run", () => ["rm", `a/b${hostile}`, ...of("other")], shown],
    ["rm", () => ["rm", run, ...of("other")], shown],
    ["runs of such names", () => ["runs", ...of("odd")], "alpha\\u202e"],
    ["query of runs of such names", () => ["query", "FROM runs", ...of("odd")], "alpha\\u202e"],
    ["query with what is left out", () => ["query", "FROM bars", "--strict", ...of("odd")], "alpha\\u202e"],
    [
      "files of runs of such names",
      () => ["export", "--list", "bars", "--run", oddRun, "--strict", ...of("odd")],
      "alpha\\u202e",
    ],
    ["verify of such names", () => ["verify", "--deep", ...of("odd")], "alpha\\u202e"],
    [
      "diff with such names",
      () => ["maintain", "diff", join(folder, "odd"), join(folder, "before")],
      "alpha\\u202e",
    ],
    ["rebuild of such names", () => ["maintain", "rebuild", ...of("odd")], "alpha\\u202e"],
    ["rm of such names", () => ["rm", oddRun, ...of("odd")], "alpha\\u202e"],
    ["serve of such an archive", () => ["serve", ...of(`none${hostile}`)], shown],
    ["simulate with such a fault", () => ["simulate", "--fault", hostile, "--cache", folder], shown],
    ["an option of such a value", () => ["query", "SELECT 1", "--timeout", hostile, ...of("archive")]],
    ["an option of such a name", () => ["runs", `--${hostile}`], shown],
    ["a command of such a name", () => [hostile], shown],
    ["a completion of such a shell", () => ["completion", hostile], "\\u001b[2K\\rCOMPLETE"],
  ];

  for (const [name, args, says] of commands) {
    // whether such texts are in what the others tell is not known
    if ((says === undefined) !== isTestAll) continue;
    test(`${name}, in text and as JSON`, async () => {
      // rows for programs are their own affair
      const json = await told([...args(), "--json"], { stdoutIsTerminal: true });
      const text = await told(args());
      if (says !== undefined) expect([text.includes(says), json.includes(says)]).not.toEqual([false, false]);
    });
  }

  test("on a terminal too, whose progress it stands in", async () => {
    const written: string[] = [];
    const stderr = Object.assign(Object.create(process.stderr), {
      isTTY: true,
      columns: 200,
      write: () => true,
    });
    const onTerminal = {
      stderrIsTerminal: true,
      stdoutIsTerminal: true,
      stderr,
      err: (text: string) => written.push(text),
    };
    await told(["query", "SELECT DISTINCT symbol FROM fills", "-f", "ndjson", ...of("archive")], onTerminal);
    await told(["export", "--list", "fills", ...of("archive")], onTerminal);
    await told(["archive", run, ...of("terminal"), ...asked()], onTerminal);
    // the bar's own codes, of which it is above
    const own = aboveBar("\n").split("\n");
    const rest = written.map((text) => own.reduce((left, code) => left.replaceAll(code, ""), text));
    expect(rest.flatMap(obeyed)).toEqual([]);
  });
});

test("token prints a line that is JSON, whatever the name", async () => {
  const { stdout } = await runInside(["serve", "token", hostile, "--instance", hostile], {
    stdin: Readable.from(["0123456789abcdef-own"]),
  });
  expect(obeyed(stdout)).toEqual([]);
  expect(JSON.parse(stdout)).toMatchObject({ name: hostile, instances: [hostile] });
});

test("rows for programs are as they are stored", async () => {
  const csv = await runInside([
    "query",
    "SELECT DISTINCT fee_currency FROM fills",
    "-f",
    "csv",
    ...of("archive"),
  ]);
  expect(csv.stdout).toContain(hostile);
  const json = await runInside([
    "query",
    "SELECT DISTINCT fee_currency FROM fills",
    "--json",
    ...of("archive"),
  ]);
  const onTerminal = await runInside(
    ["query", "SELECT DISTINCT fee_currency FROM fills", "--json", ...of("archive")],
    { stdoutIsTerminal: true },
  );
  expect(json.stdout).toContain("\u202e");
  expect(onTerminal.stdout).not.toContain("\u202e");
  expect(JSON.parse(onTerminal.stdout)).toEqual(JSON.parse(json.stdout));
});

test("reports go through the door that escapes: past it go rows for programs, help, and what shells read", async () => {
  const past: string[] = [];
  const names = await readdir(inProject("src", "cli"), { recursive: true });
  for (const name of names.filter((one) => one.endsWith(".ts"))) {
    const source = await readFile(inProject("src", "cli", name), "utf8");
    if (/terminal\.out\b/.test(source)) past.push(name);
  }
  expect(past.sort()).toEqual([
    "apart/query-answer.ts",
    "commands/completion.ts",
    "commands/export.ts",
    "commands/serve.ts",
    "entry/command-line.ts",
    "list/list-files.ts",
    "process/open-session.ts",
  ]);
});
