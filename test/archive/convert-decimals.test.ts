// @module-tag slow
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { tables } from "../../src/model/profile/table.ts";
import { ConvertFixture, sampleLine } from "../fixtures/archive/convert-fixture.ts";

let fixture: ConvertFixture;
beforeAll(async () => {
  fixture = await ConvertFixture.open();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const bars = tables.find(({ name }) => name === "bars")!;

/** A canonical decimal with so many digits on either side of the point at most. */
function decimal(whole: number, fraction: number): fc.Arbitrary<string> {
  const digits = (most: number) => fc.string({ unit: fc.constantFrom(..."0123456789"), maxLength: most });
  return fc.tuple(fc.boolean(), digits(whole), digits(fraction)).map(([negative, before, after]) => {
    const ahead = before.replace(/^0+/, "") || "0";
    const behind = after.replace(/0+$/, "");
    const sign = negative && /[1-9]/.test(ahead + behind) ? "-" : "";
    return `${sign}${ahead}${behind === "" ? "" : `.${behind}`}`;
  });
}

// types of more than 18 digits are read by way of smaller ones: values at the edges of these, and beyond
const edges = [
  "999999999.999999999",
  "1000000000",
  "0.0000000001",
  "999999.999999999999",
  "1000000.0000000001",
];

it.each([
  [38, 18],
  [38, 9],
  [24, 12],
  [20, 2],
  [38, 0],
  [38, 37],
])(
  "a column of DECIMAL(%i,%i) holds every value of its digits exactly, and refuses one digit more",
  async (width, scale) => {
    const exactTypes = {
      open: "DECIMAL(18,9)",
      high: "DECIMAL(18,9)",
      low: "DECIMAL(18,9)",
      close: "DECIMAL(18,9)",
    };
    const types = { exactTypes: { ...exactTypes, volume: `DECIMAL(${width},${scale})` } };
    const fits = (text: string) => {
      const [whole = "", fraction = ""] = text.replace("-", "").split(".");
      return fraction.length <= scale && (whole === "0" ? 0 : whole.length) <= width - scale;
    };
    const value = fc.oneof(
      decimal(Math.min(width - scale, 9), Math.min(scale, 9)),
      decimal(Math.min(width - scale, 6), Math.min(scale, 12)),
      decimal(width - scale, scale),
      fc.constantFrom("", "0", ...edges.filter(fits), ...edges.filter(fits).map((text) => `-${text}`)),
    );
    const line = (volume: string, i: number) => `${sampleLine(bars, { seq: String(i + 1), volume })}\n`;
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 40 }), async (values) => {
        const text = values.map(line).join("");
        const { out } = await fixture.convert(bars, [await fixture.segment(text)], types);
        expect((await fixture.lines(bars, out)).map((row) => `${row}\n`).join("")).toBe(text);
      }),
      { numRuns: 8, seed: 11 },
    );
    const beyond = [`1${"0".repeat(width - scale)}`, `0.${"0".repeat(scale)}1`];
    for (const volume of beyond) {
      const segment = await fixture.segment(line("1", 0) + line(volume, 1));
      await expect(fixture.convert(bars, [segment], types)).rejects.toMatchObject({
        code: "value_out_of_range",
      });
    }
  },
);
