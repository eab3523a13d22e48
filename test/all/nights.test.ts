import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { archiveNights } from "../fixtures/source/nights.ts";

// a run begins, grows, ends and is forgotten in them; month-of-nights.test.ts has other gateways, for longer
test("twelve nights of a gateway that keeps rows for eight days, counts none and moves each night", async () => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-nights-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const { runs, unfinished } = await archiveNights(join(folder, "archive"), {
    manners: { literal: true, retentionDays: 8 },
    moves: true,
    on: [...Array(12).keys()],
  });
  expect({ runs, unfinished }).toEqual({ runs: 12, unfinished: [] });
}, 240_000);
