import { expect, test } from "vitest";
import { reportFailure } from "../../src/cli/process/failure.ts";
import { RunvaultError } from "../../src/model/error.ts";

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("what %s stopped ends with %i, and says so in JSON as well", (signal, status) => {
  const stopped = new RunvaultError("interrupted", `stopped by ${signal}`, { status });
  const damaged = new RunvaultError("archive_damaged", "a file is damaged");
  const said: string[] = [];
  const options = {
    debug: false,
    hintText: (hint: string) => hint,
    write: (text: string) => said.push(text),
  };
  expect(reportFailure(new AggregateError([damaged, stopped]), { ...options, json: true })).toBe(status);
  const exits = said.map((line) => (JSON.parse(line) as { error: { exit: number } }).error.exit);
  expect(exits).toEqual([5, status]);
  expect(reportFailure(stopped, { ...options, json: false })).toBe(status);
});
