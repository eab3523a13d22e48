import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";

test.each([
  ["", "there is no token on standard input", "and give it to this command with `< FILE`"],
  ["\n", "there is no token on standard input", "openssl rand -hex 32"],
  ["short", "a token must be one word of at least 20 ASCII characters", "openssl rand -hex 32"],
])("%j is no token, and what to do is said", async (given, message, hint) => {
  const { status, stdout, stderr } = await runInside(["serve", "token", "desk", "--instance", "*"], {
    stdin: Readable.from([given]),
  });
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(message);
  expect(stderr).toContain(hint);
});
