import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { parseTime } from "../../../src/model/time.ts";
import { JobWorld } from "../../fixtures/pipeline/job-world.ts";

test("a start during an execution is missed by the next one, and that which began it by none", async () => {
  await using world = await JobWorld.open(1, 1);
  const hook = createServer((_, response) => void response.end());
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  process.env.MISSED_HOOK = `http://127.0.0.1:${(hook.address() as AddressInfo).port}`;
  const file = await world.write({
    schedule: { cron: "0 * * * *", timezone: "UTC" },
    notify: { webhook: { url_env: "MISSED_HOOK" } },
  });
  const missed = async (began: string, ended: string) => {
    let now = parseTime(`2040-01-10T${began}Z`);
    const step = (name: string) => {
      if (name === "planned-job") now = parseTime(`2040-01-10T${ended}Z`);
    };
    const { result } = await world.execute(file, { clock: () => now, step });
    return result.troubles.filter(({ kind }) => kind === "missed").map(({ text }) => text);
  };
  try {
    expect(await missed("01:00:01", "01:10:00")).toEqual([]);
    expect(await missed("02:00:01", "03:10:00")).toEqual([]);
    expect(await missed("04:00:01", "04:10:00")).toEqual([
      "the start of 2040-01-10T03:00:00.000Z was missed: the previous execution ran until 2040-01-10T03:10:00.000Z",
    ]);
    expect(await missed("07:00:01", "07:10:00")).toEqual([
      "the start of 2040-01-10T05:00:00.000Z was missed: nothing started the job then",
      "the start of 2040-01-10T06:00:00.000Z was missed: nothing started the job then",
    ]);
  } finally {
    hook.close();
    delete process.env.MISSED_HOOK;
  }
});
