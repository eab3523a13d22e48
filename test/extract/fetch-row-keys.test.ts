import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SegmentBuilder } from "../../src/extract/fetch/segment-builder.ts";
import { int64Max, int64Min } from "../../src/model/time.ts";
import { cutText } from "../fixtures/source/cut-text.ts";

const run = { instanceId: "a", runId: "run-1" };

function textOf(): SegmentBuilder {
  return new SegmentBuilder({
    run,
    from: undefined,
    to: undefined,
    segmentBytes: 4000,
    mostBytes: 8000,
    unsorted: true,
    pool: { acquire: async () => Buffer.alloc(4000), release: () => {} },
  });
}

/** A line as it usually comes; with a blank, another way to write the same that is read as JSON. */
const line = (seq: string, ts: string, blank = "") =>
  Buffer.from(
    `{${blank}"run_id":"run-1","instance_id":"a","seq":"${seq}","ts_event":"${ts}","rest":"of the row, some bytes more"}\n`,
  );

const digits = (most: number) => fc.stringMatching(new RegExp(`^\\d{1,${most}}$`));
const seqs = fc.oneof(digits(20), digits(15), fc.stringMatching(/^[\d:/ x]{1,16}$/));
const times = fc.oneof(
  fc.stringMatching(/^\d{19}$/),
  fc.stringMatching(/^-?\d{1,20}$/),
  fc.stringMatching(/^\d{15}[\d:/*]\d{3}$/),
  fc.constantFrom(
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
  ),
  fc.bigInt({ min: 1_000_000_000_000_000_000n, max: int64Max }).map(String),
);

describe("the key of a row", () => {
  it("is the same whether it is read in place or as JSON, to the last digit", async () => {
    await fc.assert(
      fc.asyncProperty(seqs, times, fc.boolean(), async (seq, ts, placeFirst) => {
        const isRow =
          /^\d{1,20}$/.test(seq) &&
          /^-?\d{1,19}$/.test(ts) &&
          BigInt(ts) >= int64Min &&
          BigInt(ts) <= int64Max;
        const text = textOf();
        text.beginAnswer(0n);
        const [first, second] = placeFirst ? ["", " "] : [" ", ""];
        await cutText(text.push(line(seq, ts, first)));
        expect(text.lastTs).toBe(isRow ? BigInt(ts) : undefined);
        const again = cutText(text.push(line(seq, ts, second)));
        if (!isRow) return void (await again);
        await expect(again).rejects.toMatchObject({
          code: "duplicate_row",
          message: `two rows share ts_event ${BigInt(ts)} and seq ${BigInt(seq)}`,
        });
      }),
      { numRuns: 3000 },
    );
  });

  it.each([
    ["run-2", "a"],
    ["run-11", "a"],
    ["run-1", "b"],
    ["bun-1", "a"],
  ])("is refused as another run's in a row of %s of %s", async (runId, instanceId) => {
    const text = textOf();
    text.beginAnswer(0n);
    const other = line("1", "1640995200000000000").toString();
    const foreign = other
      .replace('"run-1"', JSON.stringify(runId))
      .replace('"a"', JSON.stringify(instanceId));
    await expect(cutText(text.push(Buffer.from(foreign)))).rejects.toMatchObject({
      code: "history_identity_conflict",
    });
  });

  it("is shown without control characters and secrets where it is another run's", async () => {
    const text = textOf();
    text.beginAnswer(0n);
    const foreign = line("1", "1640995200000000000")
      .toString()
      .replace('"run-1"', '"Bearer sk-secret\\u001b[2J"');
    const { message } = (await cutText(text.push(Buffer.from(foreign))).catch((thrown) => thrown)) as Error;
    expect(message).toMatch(/^a row belongs to a\/Bearer \*\*\*: \{/);
    expect(message).not.toMatch(/\p{Cc}|sk-secret/u);
  });
});
