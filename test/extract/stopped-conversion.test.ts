import { expect, test } from "vitest";
import { RunvaultError } from "../../src/model/error.ts";
import { hours, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

test("no bucket is converted after a stop, and the job after it converts what is left", async () => {
  const source = new ArraySource(run, world({ fills: hours(40), orders: hours(40), events: hours(40) }));
  await using archived = await TableWorld.create();
  const controller = new AbortController();
  const steps: string[] = [];
  const step = (name: string) => {
    steps.push(name);
    // all rows are here, and two buckets wait for their turn
    if (name === "converted") controller.abort(new RunvaultError("interrupted", "stopped"));
  };
  const stopped = archived.archiveRun(source, { signal: controller.signal, step });
  await expect(stopped).rejects.toMatchObject({ code: "interrupted" });
  // the one whose turn it was by then, and no third
  expect(steps.filter((name) => name === "converted").length).toBeLessThan(3);
  const { manifest } = await archived.archiveRun(source);
  expect(manifest.state).toBe("COMPLETE");
});
