import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { consoleSessions, masked, runSession, withOutputs } from "../fixtures/command/console-document.ts";
import { inProject } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";

const document = inProject("docs/cookbook.md");
const text = readFileSync(document, "utf8");
const sessions = consoleSessions(text);

/** UPDATE_COOKBOOK=1 writes what the commands print into the document, to be read before it is committed. */
const isUpdate = process.env.UPDATE_COOKBOOK === "1";

test("the cookbook has four sessions", () => {
  expect(sessions.length).toBeGreaterThanOrEqual(4);
});

describe.skipIf(!requires("http-client") || !requires("curl"))("the cookbook's session", () => {
  const outputs: string[] = [];

  test.each(sessions)("$title", async (session) => {
    const results = await runSession(session);
    for (const [index, { text, output }] of session.commands.entries()) {
      const result = results[index]!;
      // what fails is shown to fail
      const isTold = session.commands[index + 1]?.text === "echo $?";
      if (isUpdate) continue;
      expect(masked(result.output), text).toBe(masked(output));
      if (!isTold) expect(result, text).toMatchObject({ status: 0 });
    }
    outputs.push(...results.map((result) => result.output));
  });

  if (isUpdate)
    test("outputs are written into the document", () => {
      writeFileSync(document, withOutputs(text, outputs));
    });
});
