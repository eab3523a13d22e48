// @module-tag slow
import { expect, test } from "vitest";
import { firstOfMany } from "../../src/extract/choose/first-of-many.ts";
import { type ListFinding, listDoubt, listFailure, listNote } from "../../src/extract/choose/list-finding.ts";
import { RunvaultError } from "../../src/model/error.ts";

const wrong = (instanceId: string, runId: string) =>
  listFailure(new RunvaultError("not_a_gateway", "the document does not follow the interface"), instanceId, [
    runId,
  ]);
const many = (count: number, of: (i: number) => ListFinding) =>
  Array.from({ length: count }, (_, i) => of(i));
const placesOf = (findings: readonly ListFinding[]) =>
  findings.map(({ instanceId, runIds, count }) =>
    [instanceId, ...runIds, ...(count ? [count] : [])].join(" "),
  );

test("of many wrong entries of a list the first ten are told, each as it is, and how many more", () => {
  const findings = many(120_000, (i) => wrong("i", `r${i}`));
  const told = firstOfMany(findings);
  expect(told).toHaveLength(11);
  expect(told.slice(0, 10)).toEqual(findings.slice(0, 10));
  expect(told[10]).toMatchObject({ instanceId: "i", runIds: [], count: 119_990 });
  expect(told[10]!.error).toMatchObject({
    code: "not_a_gateway",
    message: "and 119990 more runs in the same list",
    place: { instance: "i" },
    exit: findings[0]!.error!.exit,
  });
});

test("ten are told as they are", () => {
  const findings = many(10, (i) => wrong("i", `r${i}`));
  expect(firstOfMany(findings)).toEqual(findings);
});

test("lists, and what is wrong, are counted apart", () => {
  const findings = [
    ...many(11, (i) => wrong("a", `r${i}`)),
    ...many(12, (i) => wrong("b", `r${i}`)),
    ...many(13, (i) => listDoubt("a", [`r${i}`], "unknown status X", "")),
    ...many(14, (i) => listNote("a", [`r${i}`], "is odd")),
  ];
  const rest = firstOfMany(findings).filter(({ count }) => count !== undefined);
  expect(rest.map(({ error, count }) => [error?.code, error?.place.instance, count])).toEqual([
    ["not_a_gateway", "a", 1],
    ["not_a_gateway", "b", 2],
    ["unverified", "a", 3],
    [undefined, undefined, 4],
  ]);
});

test("instances of odd ids are entries of one list; others that fail are each told", () => {
  const refused = new RunvaultError("refused", "an odd id", { scope: "instance" });
  const odd = many(12, (i) => listFailure(refused, `i${i}\u0000`, []));
  const denied = many(12, (i) => listFailure(new RunvaultError("permission_denied", "no"), `i${i}`, []));
  expect(placesOf(firstOfMany([...odd, ...denied]))).toEqual([
    ...placesOf(odd.slice(0, 10)),
    ...placesOf(denied),
    " 2",
  ]);
});
