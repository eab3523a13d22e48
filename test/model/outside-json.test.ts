import { expect, test } from "vitest";
import { parseManifest } from "../../src/archive/manifest/parse-manifest.ts";
import { deepestJson, isDeeper, parseJson } from "../../src/model/outside-json.ts";

const nested = (levels: number) => `${"[".repeat(levels)}1${"]".repeat(levels)}`;

test.each([
  [nested(deepestJson), false],
  [nested(deepestJson + 1), true],
  [`{"a":${nested(deepestJson)}}`, true],
  [`[${"[],".repeat(1000)}[]]`, false],
  [JSON.stringify("[".repeat(1000)), false],
  [JSON.stringify(`"\\${"{".repeat(1000)}\\"`), false],
  [`["é€😀",${nested(deepestJson)}]`, true],
])("%.40s… is seen as deep as it is, as text and as bytes", (text, deeper) => {
  expect([isDeeper(text), isDeeper(Buffer.from(text))]).toEqual([deeper, deeper]);
  if (deeper) expect(() => parseJson(text)).toThrow(SyntaxError);
  else expect(parseJson(text)).toEqual(JSON.parse(text));
});

test("a manifest nested deeper than the stack is damage, not a bug", () => {
  expect(() => parseManifest(`{"format":2,"tables":${nested(200_000)}}`, "runs/a/1.json")).toThrow(
    expect.objectContaining({ code: "archive_damaged", place: { file: "runs/a/1.json" } }),
  );
});
