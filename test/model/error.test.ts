import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ErrorCode,
  errorCodes,
  exit,
  exitPrecedence,
  RunvaultError,
  type Scope,
  worstExit,
  worthRetrying,
} from "../../src/model/error.ts";
import { inProject } from "../fixtures/command/project.ts";

const codes = Object.keys(errorCodes) as ErrorCode[];

test("of several exit statuses the first of 1, 5, 7, 9, 3, 4, 8, 6 wins", () => {
  const order = [1, 5, 7, 9, 3, 4, 8, 6];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, ...order)), (statuses) => {
      const expected = order.find((status) => statuses.includes(status)) ?? 0;
      expect(worstExit(statuses)).toBe(expected);
    }),
  );
  expect(worstExit([])).toBe(exit.done);
});

test("an interruption outranks every other outcome, and every other outcome a wrong command line", () => {
  for (const [first, rest] of [
    [exit.interrupted, exitPrecedence],
    [exit.terminated, exitPrecedence.filter((status) => status !== exit.interrupted)],
    [exit.locked, [exit.usage, exit.done]],
    [exit.bug, [2, 3, 4, 5, 6, 7, 8, 9]],
  ] as const) {
    expect(worstExit([...rest, first])).toBe(first);
  }
});

test("a status that nobody defined is a bug, never success", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 255 }), (status) => {
      const known = (Object.values(exit) as number[]).includes(status);
      expect(worstExit([0, status])).toBe(known ? status : exit.bug);
    }),
  );
});

test("every exit status but success has a place in the precedence, once", () => {
  const failing = Object.values(exit).filter((status) => status !== exit.done);
  expect([...exitPrecedence].sort()).toEqual(failing.sort());
});

test("every code leads to a defined failing exit status, and only what the gateway did is asked again", () => {
  for (const code of codes) {
    const { exit: status, retry } = errorCodes[code];
    expect(exitPrecedence).toContain(status);
    if (retry === "again") expect([code, status]).toEqual([code, exit.gateway]);
  }
});

test("a refusal is the gateway's, but none that the same command would get over later", () => {
  const refusals = codes.filter((code) => errorCodes[code].exit === exit.refused);
  expect(refusals.sort()).toEqual([
    "capability_unavailable",
    "gone",
    "history_unavailable",
    "instance_not_found",
    "limit_exceeded",
    "misdirected",
    "permission_denied",
    "refused",
    "resource_not_found",
    "route_not_found",
    "run_not_found",
    "state_conflict",
    "unauthenticated",
  ]);
  for (const code of refusals) {
    expect(new RunvaultError(code, "")).toMatchObject({ isGateways: true, retry: "never" });
  }
  expect(worthRetrying.has(exit.refused)).toBe(false);
  const others = codes.filter((code) => ![exit.gateway, exit.refused].includes(errorCodes[code].exit as 3));
  for (const code of others) expect(new RunvaultError(code, "").isGateways, code).toBe(false);
});

test("every code says whom it concerns, and what fails on this machine or on the way to the gateway concerns the job", () => {
  const scopes: Scope[] = ["table", "run", "instance", "job"];
  for (const code of codes) expect(scopes, code).toContain(errorCodes[code].scope);
  for (const code of codes) {
    const { exit: status, scope } = errorCodes[code];
    if (status === exit.storage || status === exit.interrupted) expect([code, scope]).toEqual([code, "job"]);
    // rows that are not what was asked for say nothing of other tables
    if (status === exit.incomplete) expect([code, scope]).toEqual([code, "table"]);
  }
  expect(new RunvaultError("unreachable", "").scope).toBe("job");
});

test("every history code of the contract is a code of ours", () => {
  const file = inProject("proto/example/history/v1/history_service.proto");
  const comment = /Lowercase snake_case: ([^.]*)\./.exec(readFileSync(file, "utf8"))?.[1] ?? "";
  const named = comment.replaceAll("//", " ").trim().split(/,\s*/);
  expect(named.length).toBeGreaterThan(10);
  expect(named.map((code) => code.trim()).filter((code) => !codes.includes(code as ErrorCode))).toEqual([]);
});

test("file-system errors become storage errors with a hint and their cause, anything else is internal", () => {
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  const error = RunvaultError.from(full, { place: { file: "a" } });
  expect(error).toMatchObject({
    code: "storage_full",
    exit: exit.storage,
    cause: full,
    place: { file: "a" },
  });
  expect(error.hint).toMatch(/space/);
  for (const thrown of [new Error("x"), "text", null, 1, { code: "constructor" }]) {
    expect(RunvaultError.from(thrown)).toMatchObject({ code: "internal", exit: exit.bug, cause: thrown });
  }
  expect(RunvaultError.from(undefined)).toMatchObject({ code: "internal", message: "undefined" });
});

test("an error keeps itself on the way up, and what is known of its place is added, not overwritten", () => {
  const inner = new RunvaultError("rate_limited", "slow down", {
    cause: "why",
    place: { table: "fills" },
    hint: "wait",
    retryAfterMs: 5,
    status: 429,
  });
  expect(RunvaultError.from(inner)).toBe(inner);
  expect(inner.at({ table: "other", run: "r" })).toMatchObject({
    code: "rate_limited",
    message: "slow down",
    cause: "why",
    place: { table: "fills", run: "r" },
    hint: "wait",
    retryAfterMs: 5,
    status: 429,
    retry: "again",
  });
});

test("an error may concern fewer than its code says, and keeps that on the way up", () => {
  const error = new RunvaultError("not_a_gateway", "a page", { status: 200 });
  expect(error.scope).toBe("job");
  expect(error.concerning("table").at({ run: "r" })).toMatchObject({
    code: "not_a_gateway",
    message: "a page",
    scope: "table",
    status: 200,
    place: { run: "r" },
    exit: exit.gateway,
  });
});
