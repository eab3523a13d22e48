import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { readProfile } from "../../../src/gateway/profile/load-profile.ts";
import { profileJsonSchema } from "../../../src/gateway/profile/profile-json-schema.ts";
import { inProject } from "../../fixtures/command/project.ts";

/** A wrong profile, and what is said of it; see the head of the data file. */
interface BadProfile {
  readonly what: string;
  readonly file: string;
  readonly says: readonly string[];
}

const badProfiles = parse(
  readFileSync(inProject("test/gateway/profile/bad-profiles.yaml"), "utf8"),
) as BadProfile[];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function toldOf(text: string): Promise<readonly string[]> {
  const path = join(folder, "profile.yaml");
  await writeFile(path, text);
  const { profile, faults } = await readProfile(path);
  expect(profile).toBeNull();
  return faults
    .flatMap(({ file, line, column, message, hint }) => [
      `${file}:${line}:${column}: ${message}`,
      `  ${hint}`,
    ])
    .map((line) => line.replaceAll(`${folder}/`, ""));
}

test("there are enough of them, and none twice", () => {
  expect(badProfiles.length).toBeGreaterThan(80);
  expect(new Set(badProfiles.map(({ what }) => what)).size).toBe(badProfiles.length);
});

describe("a wrong profile is told with file, line, column and remedy", () => {
  test.each(badProfiles.map((bad) => [bad.what, bad] as const))("%s", async (_, { file, says }) => {
    const told = await toldOf(file);
    expect(told).toEqual(says);
    expect(told.join("\n")).not.toContain("5ecret");
  });
});

test("all that is wrong with a profile is told at once, in the order of its lines", async () => {
  const told = await toldOf(`profile: 1
name: acme
headers: { X-Key: 5ecret-1, Host: { env: X } }
rest:
  parametres: { run: x }
  keys: { api_key: { env: A } }
  pages: { by: cursor, next: page.next }
tables:
  fils: { path: /a }
  fills:
    path: "/x/{rum}"
    columns:
      pirce: px
      side: { from: side, words: { B: BUY, S: BUY } }
      ts_event: absent
      symbol: venue
      account: { from: a.b }
      portfolio: a
`);
  expect(
    told.filter((line) => !line.startsWith("  ")).map((line) => /^[^ ]+:\d+:\d+: \S+/.exec(line)?.[0]),
  ).toEqual([
    "profile.yaml:3:19: headers.X-Key",
    "profile.yaml:3:29: headers.Host",
    "profile.yaml:5:3: there",
    "profile.yaml:6:11: rest.keys.api_key",
    "profile.yaml:7:3: rest.pages",
    "profile.yaml:9:3: there",
    "profile.yaml:11:11: tables.fills.path:",
    "profile.yaml:13:7: there",
    "profile.yaml:14:47: tables.fills.columns.side.words.S:",
    "profile.yaml:15:17: tables.fills.columns.ts_event:",
    "profile.yaml:16:15: tables.fills.columns.symbol",
    "profile.yaml:18:18: tables.fills.columns.portfolio",
  ]);
});

test("what the published schema refuses, the program refuses, too", () => {
  const accepts = new Ajv2020({ strict: false }).compile(profileJsonSchema());
  const refused = badProfiles.filter(({ file }) => {
    try {
      return !accepts(parse(file, { schema: "core", logLevel: "silent" }));
    } catch {
      return true;
    }
  });
  // it knows misspelt keys and wrong values; what one key says of another is the program's alone
  expect(refused.length).toBeGreaterThan(30);
  for (const what of ["a misspelt column", "a misspelt unit", "a key in addresses that is not said to be"]) {
    expect(refused.map((bad) => bad.what)).toContain(what);
  }
});
