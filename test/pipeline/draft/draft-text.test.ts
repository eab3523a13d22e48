// @module-tag slow
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references to variables are shown as they are written
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { InstanceEntry } from "../../../src/model/source.ts";
import { idFault } from "../../../src/model/text/id-fault.ts";
import { type DraftSettings, draftText } from "../../../src/pipeline/draft/draft-text.ts";
import type { GatewayLook } from "../../../src/pipeline/draft/look-at-gateway.ts";
import { yamlText } from "../../../src/pipeline/draft/yaml-text.ts";
import { readJobText } from "../../../src/pipeline/file/job-files.ts";

const settings: DraftSettings = {
  name: "nightly",
  file: "nightly.yaml",
  url: "http://127.0.0.1:8080/api/v1",
  reach: [],
  token: null,
  budget: "{ rps: 20, answers: 4, connect: 10s, idle: 60s }",
  archive: "archive",
  timezone: "Europe/Berlin",
  isOwnZone: true,
  variables: [],
};
const look: GatewayLook = {
  instances: [],
  leftOut: [],
  hasFacts: null,
  countsGrowing: true,
  hasVersions: null,
  unknownStatuses: [],
};
const instance = (instanceId: string, runs = 1): InstanceEntry => ({
  instanceId,
  runIds: Array.from({ length: runs }, (_, index) => `r${index}`),
});

async function jobOf(text: string) {
  const { job, faults } = await readJobText("/nowhere/nightly.yaml", text, { env: {} });
  expect(faults).toEqual([]);
  return job!.job;
}

const anyName = fc
  .oneof(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 }),
    fc.string({ unit: "binary", minLength: 1, maxLength: 12 }),
    fc.constantFrom(
      "*",
      "**",
      "?",
      "a*b",
      "%2F",
      "%",
      "a/b",
      "${HOME}",
      "$${X}",
      "- a",
      "# a",
      "a: b",
      "null",
    ),
    fc.constantFrom(
      "1e3",
      "0x1",
      "~",
      "&a",
      "*a",
      "!a",
      "[a]",
      "{a}",
      "\\",
      '"',
      "'",
      "@",
      "`",
      " a ",
      "\u2028",
    ),
    fc.constantFrom(
      "2022-01-01",
      "日本",
      "😀",
      "\u{e0001}",
      "\ufeff",
      "\u202e",
      "true",
      "<<",
      "|",
      ">",
      "---",
      "...",
    ),
  )
  .filter((name) => idFault(name) === null);

describe("a text in a job file", () => {
  test("is read back as it is, whatever it is", () => {
    fc.assert(
      fc.property(anyName, (text) => {
        const written = yamlText(text);
        expect(written).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        const literal = text.replaceAll("${", () => "$${");
        expect(parse(`a: ${written} # x`)).toEqual({ a: literal });
        expect(parse(`{ a: ${written} }`)).toEqual({ a: literal });
      }),
      { numRuns: 500 },
    );
  });

  test("is not taken for a variable", async () => {
    const job = await jobOf(draftText({ ...settings, archive: yamlText("/data/${HOME}/$${X}") }, look));
    expect(job.archive).toBe("/data/${HOME}/$${X}");
  });
});

describe("the instances of a new job file", () => {
  test("are all taken by it, whatever they are called", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(anyName, { maxLength: 40 }), async (names) => {
        const { runs } = await jobOf(
          draftText(settings, { ...look, instances: names.map((name) => instance(name)) }),
        );
        for (const name of names)
          expect(
            runs!.instances.some((one) => one.matches(name)),
            name,
          ).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  test("stand there by name, with their runs", () => {
    const text = draftText(settings, { ...look, instances: [instance("alpha-1", 2), instance("b[1]")] });
    expect(text).toContain('\n  instances:\n    - alpha-1 # 2 runs\n    - "b?1?" # b[1]: 1 run\n');
  });

  test("are those that have no name at all yet", () => {
    expect(draftText(settings, look)).toContain(
      '\n  instances: ["*"] # the gateway has none yet; this matches all future ones\n',
    );
  });

  test("are groups where they are many, and all where these are, too", async () => {
    const many = (names: (index: number) => string) =>
      draftText(settings, {
        ...look,
        instances: Array.from({ length: 5000 }, (_, index) => instance(names(index))),
      });
    expect(many((index) => `${["alpha", "beta"][index % 2]}-${index}`)).toContain(
      '\n    - "alpha-*" # 2500 instances, 2500 runs\n    - "beta-*" # 2500 instances, 2500 runs\n',
    );
    expect(many((index) => `strat${index}`)).toContain('\n    - "strat*" # 5000 instances, 5000 runs\n');
    expect(many((index) => `${index}x`)).toContain(
      '\n  instances: ["*"] # all 5000, and all future ones: 0x, 1x, 2x, …\n',
    );
    const long = draftText(settings, {
      ...look,
      instances: Array.from({ length: 20 }, (_, index) => instance(`${index}${"é".repeat(1000)}`)),
    });
    expect(long.length).toBeLessThan(10_000);
    await jobOf(long);
  });
});

test("a new job file says which values the gateway's answer chose", async () => {
  const text = draftText(settings, {
    ...look,
    leftOut: ['"a\\u0007"'],
    hasFacts: true,
    hasVersions: false,
    unknownStatuses: ["DONE", "\u001b[31m"],
  });
  expect(text).toContain("\nrequire: counted # ");
  expect(text).toContain("\nrecheck: 7d # this gateway has no storage_version");
  expect(text).toContain('\n  # finished_status: [DONE, "\\u001b[31m"] # ');
  expect((await jobOf(text)).require).toBe("counted");
  expect(draftText(settings, { ...look, hasFacts: true, countsGrowing: false })).toContain(
    "\nrequire: any # this gateway counts only whole runs",
  );
  expect(draftText(settings, { ...look, hasFacts: false })).toContain(
    "\nrequire: any # this gateway does not",
  );
});

test("a new job file has the keys in the order of the document, and none of its lines is too long", () => {
  const text = draftText(settings, { ...look, instances: [instance("alpha-1")] });
  const keys = [...text.matchAll(/^(?:# )?(\w+):/gm)].map(([, key]) => key);
  expect(keys).toEqual([
    ...["version", "name", "gateway", "archive", "runs", "tables", "recheck", "require", "after"],
    ...["schedule", "notify", "metrics", "keep"],
  ]);
  expect(text.split("\n").filter((line) => line.length > 110)).toEqual([]);
});
