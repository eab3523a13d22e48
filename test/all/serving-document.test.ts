import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";
import { PythonSession } from "../fixtures/command/python-session.ts";
import { httpfsSetup, requires } from "../fixtures/command/requirement.ts";
import { ServedArchive } from "../fixtures/served/served-archive.ts";

const text = readFileSync(inProject("docs/serving.md"), "utf8");

/** The document's code blocks of a language. */
function blocks(language: string): string[] {
  return [...text.matchAll(/^```([^\n]+)\n(.*?)^```$/gms)]
    .filter(([, found]) => found === language)
    .map(([, , code]) => code!);
}

let served: ServedArchive;
let places: (code: string) => string;
let rows: number;

beforeAll(async () => {
  served = await ServedArchive.open();
  const run = served.runs[0]!;
  rows = (await served.simulatedLines(run, "fills")).length;
  places = (code) =>
    code
      .replaceAll("http://127.0.0.1:8080/api/v1", served.url)
      .replaceAll("alpha-1", encodeURIComponent(run.instanceId))
      .replaceAll("2022-01-01-001", encodeURIComponent(run.runId));
});
afterAll(() => served[Symbol.asyncDispose]());

test("the lines for curl give a header with five rows, and the equity of the latest run", async () => {
  const [code] = blocks("sh curl");
  const { status, stdout, stderr } = spawnSync("sh", ["-ec", places(code!)], { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^run_id,instance_id,seq,/);
  const { instanceId, runId } = served.runs
    .filter((run) => run.instanceId === served.runs[0]!.instanceId)
    .at(-1)!;
  expect(lines.slice(6)).toEqual(await served.simulatedLines({ instanceId, runId }, "equity"));
});

describe.skipIf(!requires("http-client"))("a notebook's lines give every row", () => {
  let python: PythonSession;
  beforeAll(() => {
    python = new PythonSession();
  });
  afterAll(() => python[Symbol.asyncDispose]());

  test.each(blocks("python").map((code, index) => [index + 1, code] as const))(
    "block %i",
    async (_, code) => {
      const script = `${places(code)}\nprint(len(fills), len(set(map(str, fills["seq"]))))`;
      expect((await python.run(script)).trim()).toBe(`${rows} ${rows}`);
    },
  );
});

test.skipIf(!requires("httpfs"))("the lines for DuckDB give every row", async () => {
  await using python = new PythonSession();
  await python.run(httpfsSetup);
  const codes = blocks("python httpfs");
  expect(codes.length).toBe(1);
  for (const code of codes) {
    const script = `${places(code)}\nprint(len(fills), len(set(map(str, fills["seq"]))))`;
    expect((await python.run(script)).trim()).toBe(`${rows} ${rows}`);
  }
});
