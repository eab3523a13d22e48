import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { attemptOutcomes, certificateSchema, provenStates } from "../../src/archive/manifest/manifest.ts";
import { grounds, heldGrounds, unseen } from "../../src/extract/proof/grounds.ts";
import { windowText } from "../../src/extract/proof/rungs.ts";
import { inProject } from "../fixtures/command/project.ts";

const text = readFileSync(inProject("docs/proof.md"), "utf8");
/** What the first cells of the tables' rows name. */
const named = [...text.matchAll(/^\| ([^|]*) \|/gm)].flatMap(([, cell]) =>
  cell!.split("`, `").map((name) => name.replaceAll("`", "")),
);
const missing = (names: readonly string[]) => names.filter((name) => !named.includes(name));

test("docs/proof.md explains all that a certificate can say it rests on", () => {
  const window = { from: 0n, to: 1n };
  const said: string[] = Object.values({
    ...heldGrounds,
    ...grounds,
    unseen: unseen.between(window),
    emptyEnds: grounds.emptyEnds(window),
    noRows: grounds.noRows(window),
    saidEmpty: grounds.saidEmpty("fills"),
  });
  const written = said.map((words) => words.replace(windowText(window), "[A, B)").replace("fills)", "T)"));
  expect(missing(written)).toEqual([]);
});

test("docs/proof.md explains every field of a certificate, every proof, and what tables come to", () => {
  expect(missing(Object.keys(certificateSchema.shape))).toEqual([]);
  expect(missing(certificateSchema.shape.proof.options)).toEqual([]);
  expect(missing([...provenStates, ...attemptOutcomes])).toEqual([]);
});
