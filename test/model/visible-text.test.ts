import fc from "fast-check";
import { expect, test } from "vitest";
import { visible, visibleLines } from "../../src/model/text/visible-text.ts";

test.each([
  ["\u001b[2K\rCOMPLETE\nalpha-1/run", "\\u001b[2K\\rCOMPLETE\\nalpha-1/run"],
  ["a\tb\u0000\u0007\u0008\u000b\u000c\u007f", "a\\tb\\u0000\\u0007\\u0008\\u000b\\u000c\\u007f"],
  ["\u009b31m \u0085 \u009d", "\\u009b31m \\u0085 \\u009d"],
  ["\u202a\u202e\u2066\u2069\u200e\u061c", "\\u202a\\u202e\\u2066\\u2069\\u200e\\u061c"],
  ["\u200b\u200d\u2060\ufeff\u00ad", "\\u200b\\u200d\\u2060\\ufeff\\u00ad"],
  ["\u2028\u2029", "\\u2028\\u2029"],
  ["\ud800x\udfff", "\\ud800x\\udfff"],
  // tags, which no font shows
  ["\u{e0041}", "\\udb40\\udc41"],
])("%j is shown as %s", (text, shown) => {
  expect(visible(text)).toBe(shown);
});

test("what can be seen stays as it is, also what lies beyond ASCII", () => {
  const text = 'Zürich, 東京, Δ 1.5 € \u00a0"quoted" \\n C:\\u0041 🚀 ية';
  expect(visible(text)).toBe(text);
  expect(visibleLines(text)).toBe(text);
});

test("of several lines the line feeds stay, and nothing else", () => {
  expect(visibleLines("a\r\nb\u001b[1m\n")).toBe("a\\r\nb\\u001b[1m\n");
});

test("JSON means the same, and its text does nothing", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
      for (const indent of [0, 2]) {
        const text = visibleLines(JSON.stringify(value, null, indent));
        expect(JSON.stringify(JSON.parse(text))).toBe(JSON.stringify(value));
        expect(text).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}\p{Cs}\u2028\u2029\u200b]/u);
      }
    }),
  );
});
