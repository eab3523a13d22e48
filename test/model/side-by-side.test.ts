import fc from "fast-check";
import { expect, test } from "vitest";
import { sideBySide } from "../../src/model/text/side-by-side.ts";

async function* cut(text: string, sizes: readonly number[], closed?: () => void): AsyncGenerator<Buffer> {
  try {
    let at = 0;
    for (let i = 0; at < text.length; i++) {
      const size = sizes[i % sizes.length]!;
      yield Buffer.from(text.slice(at, at + size));
      at += size;
    }
  } finally {
    closed?.();
  }
}

const texts = fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 40 });
// an empty piece is none, but not all may be empty
const sizes = fc.tuple(fc.nat(9), fc.integer({ min: 1, max: 9 }));

test("two texts have the same bytes up to the first that differs, however they are cut", async () => {
  await fc.assert(
    fc.asyncProperty(texts, texts, texts, sizes, sizes, async (start, endA, endB, sizesA, sizesB) => {
      const [a, b] = [start + endA, start + endB];
      let common = 0;
      while (common < Math.min(a.length, b.length) && a[common] === b[common]) common++;
      let closed = 0;
      const close = () => void closed++;
      let [same, differing] = [0, 0];
      for await (const stretch of sideBySide(cut(a, sizesA, close), cut(b, sizesB, close))) {
        expect(differing).toBe(0);
        expect(stretch.a.toString()).toBe(a.slice(same, same + stretch.a.byteLength));
        expect(stretch.b.toString()).toBe(b.slice(same, same + stretch.b.byteLength));
        same += stretch.same;
        if (stretch.differs) differing++;
      }
      expect({ same, differing, closed }).toEqual({ same: common, differing: a === b ? 0 : 1, closed: 2 });
    }),
  );
});
