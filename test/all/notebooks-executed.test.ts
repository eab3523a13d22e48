import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { MetricsDocument } from "../../src/analytics/metrics/metrics-document.ts";
import { run, start } from "../fixtures/command/command-process.ts";
import { builtMain, inProject } from "../fixtures/command/project.ts";
import { goldenPython, requires } from "../fixtures/command/requirement.ts";

const notebooks = readdirSync(inProject("notebooks")).filter((name) => name.endsWith(".ipynb"));

const outputSchema = z.looseObject({
  output_type: z.string(),
  data: z.record(z.string(), z.unknown()).optional(),
});
const notebookSchema = z.looseObject({
  cells: z.array(
    z.looseObject({
      cell_type: z.enum(["markdown", "code"]),
      id: z.string(),
      metadata: z.record(z.string(), z.unknown()),
      source: z.union([z.string(), z.array(z.string())]),
      execution_count: z.number().nullable().optional(),
      outputs: z.array(outputSchema).optional(),
    }),
  ),
  metadata: z.record(z.string(), z.unknown()),
});

describe.each(notebooks)("%s is kept", (name) => {
  const kept = notebookSchema.parse(JSON.parse(readFileSync(inProject("notebooks", name), "utf8")));

  test("without outputs, counts of executions, and what editors add", () => {
    for (const { cell_type, id, metadata, outputs, execution_count } of kept.cells) {
      expect(Object.keys(metadata), id).toEqual("tags" in metadata ? ["tags"] : []);
      if (cell_type === "markdown") continue;
      expect({ id, outputs, execution_count }).toEqual({ id, outputs: [], execution_count: null });
    }
    expect(Object.keys(kept.metadata)).toEqual(["kernelspec", "language_info"]);
  });

  test("with short texts", () => {
    const texts = kept.cells
      .filter(({ cell_type }) => cell_type === "markdown")
      .map(({ source }) => [source].flat());
    for (const lines of texts) expect(lines.join("").length).toBeLessThan(900);
  });
});

let folder: string;
let archive: string;

/** Serves a world, archives all of it, and gives the folder of the archive. */
async function archived(name: string, world: readonly string[]): Promise<string> {
  const simulator = start(["simulate", "--rows", "60000", "--runs", "2", "--symbols", "2", ...world]);
  const dir = join(folder, name);
  const gateway = await simulator.firstLine();
  const done = await run(["archive", "--all", "--finished", "--gateway", gateway, "--archive", dir]);
  simulator.child.kill();
  expect(done).toMatchObject({ status: 0 });
  return dir;
}

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "runvault-notebooks-")));
  archive = await archived("archive", ["--edge", "2", "--fault", "lose-fill@*"]);
  const promised = await archived("promised", ["--edge", "4"]);
  const named = ["--run", "alpha-1/2022-01-01-001"];
  const doubles = ["fills", "equity", "--decimals", "double", "--format", "parquet"];
  for (const args of [
    ["--views", "--with-analytics", ...named, "--archive", archive, "--out", join(folder, "run.duckdb")],
    [...doubles, ...named, "--archive", archive, "--out", join(folder, "live")],
    [...doubles, ...named, "--archive", promised, "--out", join(folder, "backtest")],
  ]) {
    expect(await run(["export", ...args])).toMatchObject({ status: 0 });
  }
  const page = ["--out", join(folder, "report.html"), "--specs", join(folder, "specs"), "--archive", archive];
  expect(await run(["report", named[1]!, ...page])).toMatchObject({ status: 0 });
  for (const name of notebooks) await copyFile(inProject("notebooks", name), join(folder, name));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Outputs = ReadonlyMap<string, readonly z.infer<typeof outputSchema>[]>;

const once = new Map<string, Promise<Outputs>>();

/** What each cell of code puts out, by its id. Throws where one fails. A file is executed once. */
function executed(file: string): Promise<Outputs> {
  const known = once.get(file) ?? execute(file);
  once.set(file, known);
  return known;
}

async function execute(file: string): Promise<Outputs> {
  const { stdout } = await promisify(execFile)(
    "python3",
    [inProject("test", "fixtures", "command", "execute-notebook.py"), file],
    { maxBuffer: 2 ** 28 },
  );
  const { cells } = notebookSchema.parse(JSON.parse(stdout));
  return new Map(cells.flatMap(({ id, outputs }) => (outputs === undefined ? [] : [[id, outputs] as const])));
}

/** The text that a cell answers with. */
const textOf = (outputs: readonly z.infer<typeof outputSchema>[] | undefined) =>
  (outputs ?? []).map(({ data }) => [data?.["text/plain"]].flat().join("")).join("");

const cellsWithout = ["parameters", "connect"];

/** The code of some cells of a notebook, but for what it shows. */
function cellsOf(name: string, ...ids: readonly string[]): string {
  const { cells } = notebookSchema.parse(JSON.parse(readFileSync(inProject("notebooks", name), "utf8")));
  return ids.map((id) => [cells.find((cell) => cell.id === id)!.source].flat().join("")).join("\n");
}

describe.skipIf(!requires("kernel"))("from a clean kernel, over a fresh archive,", () => {
  test.each(notebooks)(
    "%s shows something in each of its cells, and charts that can be drawn",
    async (name) => {
      const outputs = await executed(join(folder, name));
      const { compile } = await import("vega-lite");
      const { parse, View } = await import("vega");
      const silent = [...outputs].filter(([, all]) => textOf(all) === "").map(([id]) => id);
      const quiet = new Set([...cellsWithout, ...(name === "factor-study.ipynb" ? ["load"] : [])]);
      expect(silent.filter((id) => !quiet.has(id))).toEqual([]);
      const charts = [...outputs.values()]
        .flat()
        .flatMap(({ data }) => data?.["application/vnd.vegalite.v5+json"] ?? []);
      expect(charts).toHaveLength(name === "factor-study.ipynb" ? 0 : 1);
      // nbconvert and other tools that cannot draw Vega-Lite show these
      const drawings = [...outputs.values()].flat().flatMap(({ data }) => data?.["image/svg+xml"] ?? []);
      expect(drawings).toHaveLength(charts.length);
      for (const drawing of drawings) {
        const svg = [drawing].flat().join("");
        const points = [...svg.matchAll(/<polyline points="([^"]+)"/g)].map(([, line]) => line!.split(" "));
        expect(points.length).toBeGreaterThan(1);
        expect(svg).not.toMatch(/nan|inf/i);
        const height = Number(/viewBox="0 0 810 (\d+)"/.exec(svg)![1]);
        const isInside = (point: string) => {
          const [x, y] = point.split(",").map(Number) as [number, number];
          return x >= 0 && x <= 810 && y >= 0 && y <= height;
        };
        for (const line of points) expect(line.filter((point) => !isInside(point))).toEqual([]);
      }
      for (const chart of charts) {
        const view = new View(parse(compile(chart as Parameters<typeof compile>[0]).spec), {
          renderer: "none",
        });
        const drawn = await view.toSVG();
        expect(drawn.match(/aria-roledescription="line mark"|class="mark-line/g)?.length).toBeGreaterThan(1);
      }
    },
  );

  test("SQL and polars join fills to the same bars: the last that had closed", async () => {
    const costs = async (name: string) => {
      const text = textOf((await executed(join(folder, name))).get("on-bars"));
      const rows = text.matchAll(/(BTC-PERP\S*)[\s┆]+(BUY|SELL)[\s┆]+(\d+)[\s┆]+(-?[\d.]+)/g);
      return [...rows].map(([, symbol, side, fills, cost]) => [symbol, side, Number(fills), Number(cost)]);
    };
    const sql = await costs("one-run.ipynb");
    expect(sql).toHaveLength(4);
    expect(await costs("factor-study.ipynb")).toEqual(sql);
    const code = cellsOf("one-run.ipynb", "parameters", "connect", "on-bars");
    const { stdout } = await promisify(execFile)(
      "python3",
      [
        "-c",
        `${code}\nprint((on_bars["closed"] <= on_bars["ts_event"]).all(), on_bars["closed"].notna().mean() > 0.9)`,
      ],
      { cwd: folder },
    );
    expect(stdout).toBe("True True\n");
  });

  test("the figures of a run's notebook are those of `runvault metrics` and of the report", async () => {
    const named = "alpha-1/2022-01-01-001";
    const { stdout } = await run(["metrics", named, "--archive", archive, "--json"]);
    const { runs } = JSON.parse(stdout) as MetricsDocument;
    const sections = runs[0]!.sections;
    const [own] = sections.find(({ title }) => title === "Performance")!.groups;
    const expected = Object.entries(own!.figures).flatMap(([name, { value }]) =>
      value === null ? [] : [[name, Number(value)] as const],
    );
    const code = cellsOf("one-run.ipynb", "parameters", "connect", "performance");
    const print = "print(figures.set_index('metric')['value'].dropna().to_json(double_precision=15))";
    const told = await promisify(execFile)("python3", ["-c", `${code}\n${print}`], { cwd: folder });
    const seen = JSON.parse(told.stdout) as Record<string, number>;
    expect(expected.length).toBeGreaterThan(20);
    for (const [name, value] of expected)
      expect([name, seen[name]]).toEqual([name, expect.closeTo(value, 9)]);
    const page = await readFile(join(folder, "report.html"), "utf8");
    const [, sharpe = ""] = /<dt>Sharpe<\/dt><dd><span class="value">([^<]+)</.exec(page) ?? [];
    expect(Number(sharpe.replace("−", "-"))).toBeCloseTo(seen.sharpe!, 2);
  });

  test("live against backtest finds the fill that was lost, and the two basis points", async () => {
    const outputs = await executed(join(folder, "live-against-backtest.ipynb"));
    expect(textOf(outputs.get("pairs"))).toMatch(/only backtest +1\n/);
    expect(textOf(outputs.get("quantiles"))).toMatch(/\nmean +(1\.9|2\.0)/);
  });

  test("runvault notebook writes one on the newest run that runs as it is", async () => {
    const dir = join(folder, "mine");
    const done = await run(["notebook", dir, "--archive", archive, "--json"]);
    expect(done).toMatchObject({ status: 0, stderr: "" });
    const told = JSON.parse(done.stdout) as Record<string, string>;
    expect(told).toMatchObject({ notebook: join(dir, "one-run.ipynb"), instance: "alpha-1", archive });
    const runs = await run(["query", "--archive", archive, "-f", "csv", "SELECT max(run_id) FROM runs"]);
    expect(runs.stdout).toContain(told.run);
    const outputs = await executed(told.notebook!);
    expect(textOf(outputs.get("run-card"))).toContain(told.run);
    expect(textOf(outputs.get("performance"))).toContain("sharpe");
  });

  test("and one that a run's odd ids cannot break", async () => {
    // a quote, a backslash, an escape, and what ends a line
    const text = await import("../../src/cli/notebook/bound-notebook.ts");
    const odd = { instanceId: `a"b\\n'c`, runId: "d\n\u2028e" };
    const { cells } = notebookSchema.parse(JSON.parse(await text.boundNotebook("/a b", odd, "run.duckdb")));
    const parameters = [cells.find(({ id }) => id === "parameters")!.source].flat().join("");
    const { stdout } = await promisify(execFile)("python3", [
      "-c",
      `${parameters}\nimport json\nprint(json.dumps([DATABASE, INSTANCE, RUN]))`,
    ]);
    expect(JSON.parse(stdout)).toEqual(["run.duckdb", odd.instanceId, odd.runId]);
  });
});

test("the first one as a script is typed, and prints the run's figures", async () => {
  const project = join(folder, "project");
  await mkdir(join(project, "node_modules"), { recursive: true });
  await symlink(inProject("."), join(project, "node_modules", "runvault"));
  await symlink(inProject("node_modules/@types"), join(project, "node_modules", "@types"));
  await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
  await copyFile(inProject("notebooks", "one-run.ts"), join(project, "one-run.ts"));
  const compilerOptions = {
    ...{
      strict: true,
      module: "nodenext",
      target: "es2024",
      lib: ["es2024", "esnext.disposable", "esnext.array"],
    },
    ...{ types: ["node"], noEmit: true, skipLibCheck: true },
  };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["one-run.ts"] }));
  const node = promisify(execFile);
  await node(process.execPath, [inProject("node_modules/@typescript/native/bin/tsc"), "-p", project]);
  const { stdout } = await node(process.execPath, ["one-run.ts", archive], { cwd: project });
  expect(stdout).toMatch(/^alpha-1\/2022-\S+ {2}COMPLETE, [1-9]\d* fills\n/);
  expect(stdout).toMatch(/'sharpe' +│ -?\d/);
  expect(stdout).toContain("'BTC-PERP-2'");
});

describe("docs/notebooks.md, over an archive of its own,", () => {
  const text = readFileSync(inProject("docs", "notebooks.md"), "utf8");
  /** The code of the block that is marked with this word. */
  const block = (language: string, kind: string) =>
    new RegExp(`^\`\`\`${language} ${kind}\n(.*?)^\`\`\`$`, "ms").exec(text)![1]!;
  const answer = async (python: string, code: string) => {
    const { stdout } = await promisify(execFile)(python, ["-c", code], { cwd: join(folder, "docs") });
    // a statement of two seconds draws its progress first
    return JSON.parse(stdout.trimEnd().split("\n").at(-1)!) as unknown;
  };
  const figures = "print(figures.set_index('metric')['value'].dropna().to_json(double_precision=15))";

  beforeAll(async () => {
    await mkdir(join(folder, "docs"));
    const program = join(folder, "runvault");
    await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${builtMain}' "$@"\n`, { mode: 0o755 });
    const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, RUNVAULT_ARCHIVE: archive };
    await promisify(execFile)("sh", ["-euc", block("sh", "analytics")], { cwd: join(folder, "docs"), env });
  });

  test("writes the databases and the notebook that it names", () => {
    expect(readdirSync(join(folder, "docs")).sort()).toEqual(["research", "research.duckdb", "run.duckdb"]);
    expect(readdirSync(join(folder, "docs", "research")).sort()).toEqual(["one-run.ipynb", "run.duckdb"]);
  });

  test.skipIf(!requires("kernel"))(
    "has the same figures of a file that is opened and of one that is used",
    async () => {
      const opened = await answer("python3", block("python", "performance") + figures);
      expect(opened).toMatchObject({ sharpe: expect.any(Number), max_drawdown: expect.any(Number) });
      expect(await answer("python3", block("python", "attach") + figures)).toEqual(opened);
    },
  );

  test.skipIf(!requires("golden"))(
    "hands quantstats returns that it has the same Sharpe ratio of",
    async () => {
      const ours = (await answer(goldenPython, block("python", "performance") + figures)) as {
        sharpe: number;
      };
      const theirs = await answer(goldenPython, `${block("python", "quantstats")}print(sharpe)`);
      expect(Math.abs(Number(theirs) / ours.sharpe - 1)).toBeLessThan(1e-9);
    },
  );
});

describe("runvault notebook refuses", () => {
  test("a folder that has one, or its database, and leaves it", async () => {
    for (const name of ["one-run.ipynb", "run.duckdb"]) {
      const dir = join(folder, `has-${name}`);
      await mkdir(dir);
      await writeFile(join(dir, name), "mine");
      const refused = await run(["notebook", dir, "--archive", archive]);
      expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining("has a notebook already") });
      expect(readdirSync(dir)).toEqual([name]);
      expect(await readFile(join(dir, name), "utf8")).toBe("mine");
    }
  });

  test.each([
    [["x", "alpha-1/no"], 'the archive has no run "no" of instance "alpha-1"'],
    [["x", "alpha-1"], "it does not name a run"],
    [["archive/x"], "DIR is inside the archive"],
  ])("%j", async ([dir = "", ...more], message) => {
    const refused = await run(["notebook", join(folder, dir), ...more, "--archive", archive]);
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toContain(message);
  });
});
