import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import { createScrubber } from "../../../src/model/text/scrubber.ts";
import type { Trouble } from "../../../src/pipeline/record/job-record.ts";
import type { Changes } from "../../../src/pipeline/tell/changes.ts";
import {
  type Message,
  messageJsonSchema,
  messageOf,
  messageSchema,
} from "../../../src/pipeline/tell/message.ts";
import { runInside } from "../../fixtures/command/command-inside.ts";
import { inProject } from "../../fixtures/command/project.ts";
import { endAt, endedJob, failedJob, unprovenFills, worse } from "../../fixtures/tell/ended-job.ts";

function made(changes: Changes, scrubber = createScrubber(), exit = 4): Message {
  return messageSchema.parse(messageOf({ ...endedJob({}, exit), changes }, scrubber));
}

const document = readFileSync(inProject("docs/notifications.md"), "utf8");

test("the document shows a message as it is sent", () => {
  const [, shown = ""] = /^```json\n(.*?)^```$/ms.exec(document) ?? [];
  expect(JSON.parse(shown)).toEqual(made(worse(unprovenFills)));
});

test("the document names every key", () => {
  for (const key of Object.keys(messageSchema.shape)) expect(document).toContain(`\`${key}\``);
});

test("`runvault schema message` prints the schema, which accepts what is sent, and describes every key", async () => {
  const { status, stdout } = await runInside(["schema", "message"]);
  const schema = JSON.parse(stdout) as Record<string, unknown>;
  expect({ status, schema }).toEqual({ status: 0, schema: messageJsonSchema() });
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
  addFormats.default(ajv);
  expect(ajv.validate(schema, made(worse(failedJob, unprovenFills)))).toBe(true);
  const look = (part: Record<string, unknown>, path: string) => {
    for (const [key, inside] of Object.entries((part.properties ?? {}) as Record<string, object>)) {
      const { description = "" } = inside as { description?: string };
      expect([`${path}${key}`, description]).toEqual([`${path}${key}`, expect.stringMatching(/^.{6,}[^.]$/)]);
      look(inside as Record<string, unknown>, `${path}${key}.`);
      look(((inside as { items?: object }).items ?? {}) as Record<string, unknown>, `${path}${key}.N.`);
    }
  };
  look(schema, "");
});

describe("a line for chats", () => {
  test("says what changed", () => {
    expect(made(worse(failedJob, unprovenFills)).text).toBe(
      "runvault job nightly on vault-1 failed with exit status 4 — worse (2): the job nightly ended with exit status 4; " +
        "fills of alpha-1/2022-01-01-001 is UNVERIFIED: the gateway counts 12 rows more",
    );
    const mended = { worse: [], mended: [unprovenFills], reminded: [failedJob], troubles: [] };
    expect(made(mended, createScrubber(), 0).text).toBe(
      "runvault job nightly on vault-1 succeeded — resolved (1): fills of alpha-1/2022-01-01-001 is UNVERIFIED: the gateway " +
        "counts 12 rows more — still wrong (1): the job nightly ended with exit status 4",
    );
  });

  test("makes no link, calls nobody and stays one line, whatever names come from outside", () => {
    const text =
      "fills of <!channel> @here @all \u202e\u001b[31m\n<https://evil.example/|click> & more is UNVERIFIED";
    const line = made(worse({ ...unprovenFills, text })).text;
    expect(line).not.toMatch(/[<>\n]|\p{Cc}|\p{Cf}|@\w/u);
    expect(line).toContain("&lt;!channel&gt;");
  });
});

test("is of a length that holds for any number of runs, and says how many there are", () => {
  const of = (number: number): Trouble => ({
    ...unprovenFills,
    key: `table:a/${number}/fills`,
    run: String(number),
    text: `fills of a/${number} is UNVERIFIED: ${"x".repeat(5_000)}`,
    hint: "y".repeat(5_000),
  });
  const many = Array.from({ length: 5_000 }, (_, number) => of(number));
  const message = made({ worse: [...many, failedJob], mended: many, reminded: many, troubles: many });
  expect(message.counts).toEqual({ worse: 5_001, mended: 5_000, reminded: 5_000, troubles: 5_000 });
  expect(message.worse.map(({ kind }) => kind)).toEqual(["job", ...Array(19).fill("table")]);
  expect(message.runs.map(({ run }) => run)).toEqual(
    Array.from({ length: 10 }, (_, number) => String(number)),
  );
  expect(message.text.length).toBeLessThan(3_000);
  expect(JSON.stringify(message).length).toBeLessThan(128 * 1024);
});

test("gathers the tables of a run, and has the worst of it first", () => {
  const orders = { ...unprovenFills, key: "table:alpha-1/2022-01-01-001/orders", table: "orders" };
  const other = { ...unprovenFills, key: "table:b/s/fills", instance: "b", run: "s" };
  const { runs } = made({ worse: [orders], mended: [other, unprovenFills], reminded: [], troubles: [] });
  expect(runs.map(({ instance, change, tables }) => [instance, change, tables])).toEqual([
    ["alpha-1", "worse", ["orders", "fills"]],
    ["b", "mended", ["fills"]],
  ]);
});

test("has no secret that is known, no token, header or password by its form, and no query of an address", () => {
  const scrubber = createScrubber();
  scrubber.add("known-s3cret");
  const text =
    "fills: GET https://user:pass-word@gw.example/x?key=abcdef&sig=5ecret#frag-5ecret with known-s3cret and " +
    "Authorization: Bearer abcdefghijkl, token=tok-5ecret";
  const shown = JSON.stringify(
    made(worse({ ...unprovenFills, text, hint: text, run: "known-s3cret" }), scrubber),
  );
  expect(shown).not.toMatch(/5ecret|s3cret|abcdef|pass-word/);
  expect(shown).toContain("gw.example/x");
});

test("is of an execution that ended", () => {
  const { execution, at, result, exit, version, kind } = made(worse(failedJob));
  expect({ execution, at, result, exit, version, kind }).toEqual({
    ...{ execution: "k3v9x1ab", at: endAt, result: "failed", exit: 4, version: 1, kind: "change" },
  });
});
