// @module-tag slow
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { exit } from "../../src/model/error.ts";
import { jobJsonSchema } from "../../src/pipeline/file/job-json-schema.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { inProject } from "../fixtures/command/project.ts";

/** A bad file, and every line that `check` has to say of it; see the head of the data file. */
interface BadFile {
  readonly what: string;
  readonly file?: string;
  readonly add?: string;
  readonly hex?: string;
  readonly times?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly set?: readonly string[];
  readonly schema?: "accepts" | "unread";
  readonly says: readonly string[];
}

const base = `version: 1
name: nightly
gateway: { url: http://127.0.0.1:8080/api/v1 }
archive: vault
runs: {}
`;

const data = readFileSync(inProject("test/pipeline/bad-job-files.yaml"), "utf8");
const badFiles = parse(data) as BadFile[];
const accepts = new Ajv2020({ strict: false }).compile(jobJsonSchema());

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function bytesOf({ file, add = "", hex, times = 1 }: BadFile): Buffer {
  return hex === undefined ? Buffer.from((file ?? base + add).repeat(times)) : Buffer.from(hex, "hex");
}

test("there are enough of them, and none twice", () => {
  expect(badFiles.length).toBeGreaterThan(100);
  expect(new Set(badFiles.map(({ what }) => what)).size).toBe(badFiles.length);
});

describe("a bad job file is told with line, column and remedy", () => {
  test.each(badFiles.map((bad) => [bad.what, bad] as const))("%s", async (_, bad) => {
    const path = join(folder, "job.yaml");
    await writeFile(path, bytesOf(bad));
    const sets = (bad.set ?? []).flatMap((set) => ["--set", set]);
    const { status, stdout, stderr } = await runInside(["check", path, ...sets], { env: bad.env ?? {} });
    const lines = stdout.replaceAll(path, "job.yaml").trimEnd().split("\n");
    const counted = lines.findIndex((line) => /^job\.yaml: (?:ok|\d+ errors?)$/.test(line));
    expect(lines.slice(0, counted).filter((line) => line !== "")).toEqual(bad.says);
    expect({ status, stderr }).toEqual({ status: exit.usage, stderr: "" });
    // of what the environment gives, nothing is shown
    for (const value of Object.values(bad.env ?? {})) {
      if (value.length > 3) expect(stdout).not.toContain(value);
    }
    expect(stdout).not.toContain("5ecret");
  });
});

describe("the published schema agrees with the program", () => {
  const written = badFiles.filter(({ schema }) => schema !== "unread");

  test.each(written.map((bad) => [bad.what, bad] as const))("%s", (_, bad) => {
    const value: unknown = parse(bytesOf(bad).toString("utf8"), {
      schema: "core",
      merge: false,
      logLevel: "silent",
    });
    expect(accepts(value)).toBe(bad.schema === "accepts");
  });

  test("but for files that cannot be read as YAML", () => {
    const unread = badFiles.filter(({ schema }) => schema === "unread");
    for (const bad of unread) expect(() => parse(bytesOf(bad).toString("utf8")), bad.what).toThrow();
  });
});
