// @module-tag slow
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { referenceFile, schemaFile, schemaText, withReference } from "../../scripts/job-reference.ts";
import { readJobFiles } from "../../src/pipeline/file/job-files.ts";
import { jobJsonSchema } from "../../src/pipeline/file/job-json-schema.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { inProject } from "../fixtures/command/project.ts";

const shipped = globSync("pipelines/*.yaml", { cwd: inProject(".") }).sort();
const text = (file: string) => readFileSync(inProject(file), "utf8");

/** What the head of a job file says of the environment: `#   NAME   what it is`. */
function namedVariables(file: string): string[] {
  return [...text(file).matchAll(/^# {3}([A-Z_]+) {2,}\S/gm)].map(([, name]) => name!);
}

/** A value for each variable that a file names, but for those that have a default. */
function environmentOf(file: string): Record<string, string> {
  const withDefault = [...text(file).matchAll(/\$\{([A-Z_]+):-/g)].map(([, name]) => name!);
  const needed = namedVariables(file).filter((name) => !withDefault.includes(name) && name !== "RUN");
  return Object.fromEntries(needed.map((name) => [name, `https://${name.toLowerCase()}.example.com/5ecret`]));
}

test("the shipped files are the four that the document names", () => {
  const told = [...text("docs/pipelines.md").matchAll(/^\| `(pipelines\/[\w-]+\.yaml)` \|/gm)];
  expect(told.map(([, file]) => file).sort()).toEqual(shipped);
  expect(shipped.map((file) => basename(file, ".yaml"))).toEqual([
    "archive-run",
    "mirror",
    "nightly",
    "research-extract",
  ]);
});

describe.each(shipped)("%s", (file) => {
  const sets = file.endsWith("archive-run.yaml") ? ["--set", "run=alpha-1/2022-01-01-001"] : [];

  test("begins with the line by which editors know it", () => {
    expect(text(file).split("\n", 1)).toEqual(["# yaml-language-server: $schema=./pipeline.schema.json"]);
  });

  test("is sound with the environment that it names, of which nothing is shown", async () => {
    const env = environmentOf(file);
    const { status, stdout } = await runInside(["check", inProject(file), ...sets], { env });
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining(": ok\n") });
    expect(stdout).not.toContain("5ecret");
  });

  test("names every variable that it needs", async () => {
    const { files } = await readJobFiles([inProject(file)], { env: {} });
    const all = [...text(file).matchAll(/\$\{([A-Z_]+)|(?:url_env|env): ([A-Z_]+)/g)].map(
      ([, inside, named]) => inside ?? named!,
    );
    const needed = all.filter((name) => name !== "NAME");
    expect(needed.filter((name) => !namedVariables(file).includes(name))).toEqual([]);
    expect(files[0]!.faults.filter(({ level }) => level === "error").length).toBeGreaterThan(0);
  });

  test("is what the published schema asks for", () => {
    const validate = new Ajv2020({ strict: false }).compile(jobJsonSchema());
    validate(parse(text(file)));
    expect(validate.errors).toBeNull();
  });
});

describe("what is made from the schema (npm run reference makes it)", () => {
  test("the JSON Schema beside the job files", () => {
    expect(readFileSync(schemaFile, "utf8")).toBe(schemaText());
  });

  test("the table of keys in the document", () => {
    const document = readFileSync(referenceFile, "utf8");
    expect(document).toBe(withReference(document));
  });

  test("is what `runvault schema pipeline` prints", async () => {
    const { status, stdout } = await runInside(["schema", "pipeline"]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: schemaText() });
  });

  test("has a description for every key, and examples that it accepts", () => {
    const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true });
    const schema = jobJsonSchema();
    expect(() => ajv.compile(schema)).not.toThrow();
    const look = (part: Record<string, unknown>, path: string) => {
      for (const [key, inside] of Object.entries((part.properties ?? {}) as Record<string, object>)) {
        const { description, examples, ...rest } = inside as { description?: string; examples?: unknown[] };
        const name = `${path}${key}`;
        expect([name, description ?? ""]).toEqual([name, expect.stringMatching(/^.{10,}[^.]$/)]);
        expect([name, examples?.length]).toEqual([name, 1]);
        const accepts = new Ajv2020({ strict: false }).compile({ ...rest, $defs: schema.$defs });
        expect([name, accepts(examples?.[0])]).toEqual([name, true]);
        look(inside as Record<string, unknown>, `${name}.`);
        look(((inside as { items?: object }).items ?? {}) as Record<string, unknown>, `${name}.N.`);
      }
    };
    look(schema, "");
  });
});

test("the document's smallest file is sound, and its examples of errors are what is said", async () => {
  const document = text("docs/pipelines.md");
  const [, smallest = ""] = /^```yaml\n(.*?)^```$/ms.exec(document) ?? [];
  const { writeFile, mkdtemp, rm } = await import("node:fs/promises");
  const { tmpdir } = await import("node:os");
  const { join } = await import("node:path");
  const folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
  try {
    const path = join(folder, "job.yaml");
    await writeFile(path, smallest);
    const env = { GATEWAY_URL: "http://h/api/v1" };
    expect((await runInside(["check", path], { env })).status).toBe(0);
    await writeFile(path, `${smallest}recheck: 7\nschedule:\n  timezon: x\n`);
    const { stdout } = await runInside(["check", path], { env });
    const [, told = ""] = /^```\n(jobs\/nightly.*?)^```$/ms.exec(document) ?? [];
    const words = told.split("\n").map((line) => line.replace(/^\S+: /, ""));
    expect(words.filter((line) => !stdout.includes(line))).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
