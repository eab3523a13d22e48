import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { errorsFile, errorsText } from "../../scripts/error-reference.ts";

// a code that is added or changed without `npm run reference` would leave the document behind
test("docs/errors.md is the table of the error codes", () => {
  expect(readFileSync(errorsFile, "utf8")).toBe(errorsText());
});
