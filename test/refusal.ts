import { expect } from "vitest";
import type { ErrorCode } from "../src/model/error.ts";
import { type Finished, run } from "./cli-process.ts";

/** What the command line has to say of bad input. */
export interface Refusal {
  readonly status: number;
  readonly code: ErrorCode;
  /** Parts of the message, of the place, or of the hint. */
  readonly says: readonly string[];
}

type Run = (args: readonly string[]) => Promise<Finished>;

/** Runs a command as text and with --json: both name what is wrong, where, and what to do, and exit alike. */
export async function expectRefusal(
  args: readonly string[],
  refusal: Refusal,
  by: Run = (given) => run(given),
): Promise<Finished[]> {
  const text = await by(args);
  const json = await by([...args, "--json"]);
  expectText(text, refusal);
  const line = json.stderr.split("\n").find((found) => found.startsWith('{"error"'));
  expect(line, json.stderr).toBeDefined();
  const { error } = JSON.parse(line!) as { error: Record<string, unknown> };
  expect({ status: json.status, code: error.code, exit: error.exit }).toEqual({
    status: refusal.status,
    code: refusal.code,
    exit: refusal.status,
  });
  const told = `${error.message} ${JSON.stringify(error.place)} ${error.hint}`;
  for (const part of refusal.says) expect(told).toContain(part);
  return [text, json];
}

/** One run of a command, as text. */
export function expectText({ status, stderr }: Finished, refusal: Refusal): void {
  expect({ status, stderr }).toMatchObject({ status: refusal.status });
  expect(stderr).toContain(`runvault: ${refusal.code}: `);
  expect(stderr).toMatch(/^ {2}hint: ./m);
  for (const part of refusal.says) expect(stderr).toContain(part);
  // a stack belongs to --debug alone
  expect(stderr).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
}
