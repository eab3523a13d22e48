// @module-tag slow
import { expect, test } from "vitest";
import { ForeignBench, profileOf } from "../fixtures/foreign/foreign-bench.ts";
import type { Dialect } from "../fixtures/foreign/foreign-gateway.ts";
import { type DialectName, dialects } from "../fixtures/foreign/foreign-gateways.ts";

/** The time of one row in the middle, without its zone. */
const withoutZone: Dialect = {
  ...dialects.epsilon,
  rows(page, url) {
    const reply = dialects.epsilon.rows(page, url);
    return { ...reply, body: reply.body.replace(/("at":"2026-01-05T00:07:[^"]*)Z"/g, '$1"') };
  },
};

/** A gateway that compares the bounds it is sent, and the times of its rows, in whole units of so many nanoseconds. */
const comparing = (dialect: Dialect, unitNs: bigint): Dialect => ({
  ...dialect,
  rowsAsked(url) {
    const asked = dialect.rowsAsked(url);
    const whole = (ns: bigint | undefined) => (ns === undefined ? undefined : (ns / unitNs) * unitNs);
    return asked && { ...asked, from: whole(asked.from), to: whole(asked.to) };
  },
});

test.each([
  // told as rows "missing from its answers or its counts"
  [
    "a time without its zone",
    "epsilon",
    withoutZone,
    /2026-01-05T00:07:\S+" is not an RFC 3339 time with a zone/,
  ],
  // told as bounds that are ignored
  ["bounds in ms", "corona", comparing(dialects.corona, 1_000_000n), /compare times in whole milliseconds/],
  // told as rows in another order on each page
  ["bounds in us", "epsilon", comparing(dialects.epsilon, 1_000n), /compare bounds in a coarser unit/],
] as const)("%s: archive names it, and no rows that are missing", async (_, name, dialect, says) => {
  await using bench = await ForeignBench.of(dialect, profileOf(name as DialectName));
  const { status, stdout, stderr } = await bench.archive();
  expect(status).not.toBe(0);
  expect(stdout + stderr).toMatch(says);
  expect(stdout + stderr).not.toMatch(/missing/);
  expect((await bench.table("fills"))?.proven).toBeNull();
});
