import { expect, it } from "vitest";
import { readInstances, readRuns } from "../../src/gateway/documents.ts";
import { Notices } from "../../src/gateway/notices.ts";
import { UnknownFields } from "../../src/gateway/rpc/unknown-fields.ts";
import { turnsIn } from "../fixtures/source/count-turns.ts";
import { processorMs } from "../fixtures/source/longest-turn.ts";

const unknown = () => new UnknownFields(new Notices(undefined));
const instancesIn = (text: string) => readInstances(Buffer.from(text), {}, unknown());
const runsIn = (text: string) => readRuns(Buffer.from(text), "a", {}, unknown());
const runNamed = (id: string, more = "") =>
  `{"run_id":${JSON.stringify(id)},"instance_id":"a","status":"FINISHED","ts_started":"1","ts_ended":"2","final":true${more}}`;

it("an id with a control character, a half character, or a very long one leaves the others of its list", async () => {
  const ids = ["r1", "r\u0000", "r\ud800", "r".repeat(5000), "../r"];
  const runs = await runsIn(`{"runs":[${ids.map((id) => runNamed(id)).join(",")}]}`);
  expect(runs.map(({ runId }) => runId)).toEqual(ids);
  const listed = ids.map((id) => JSON.stringify(id)).join(",");
  expect(await instancesIn(`{"instances":[{"instance_id":"a\\u0000","run_ids":[${listed}]}]}`)).toEqual([
    { instanceId: "a\u0000", runIds: ids },
  ]);
});

it.each([
  ["entries", `{"instances":[${"{},".repeat(400_000)}{}]}`, "more than 262144 entries"],
  ["entries that are wrong", `{"instances":[${'{"id":1},'.repeat(50_000)}{}]}`, "instances.0.instance_id: "],
  [
    "runs that are wrong",
    `{"instances":[{"instance_id":"a","run_ids":[${"1,".repeat(300_000)}1]}]}`,
    "instances.0.run_ids.0: ",
  ],
  ["runs that are no list", '{"instances":{}}', "instances: Invalid input: expected array"],
])("a list of absurdly many %s is refused in time", async (_, text, message) => {
  const spent = await processorMs(async () => {
    await expect(instancesIn(text)).rejects.toThrow(message);
  });
  expect(spent).toBeLessThan(5000);
});

it("an entry with a hundred thousand unknown fields, or a very long text, is stored as it came", async () => {
  const fields = Array.from({ length: 100_000 }, (_, i) => `"k${i}":1`).join(",");
  for (const more of [`,${fields}`, `,"note":"${'\\"'.repeat(5 << 20)}"`, ',"note":"]},{\\\\"']) {
    const entry = runNamed("r1", more);
    const [first, second] = await runsIn(`{"runs":[ ${entry} ,${runNamed("r2")}]}`);
    expect(Buffer.from(first!.text!).equals(Buffer.from(entry))).toBe(true);
    expect(Buffer.from(second!.text!).toString()).toBe(runNamed("r2"));
  }
});

// read at once, each is one turn or two
const entriesOf = (length: number, textOf: (i: number) => string) =>
  Array.from({ length }, (_, i) => textOf(i)).join(",");
it.each([
  ["a list of runs", () => runsIn(`{"runs":[${entriesOf(30_000, (i) => runNamed(`r${i}`))}]}`)],
  [
    "a list of runs that cannot be read",
    () => runsIn(`{"runs":[${entriesOf(15_000, (i) => `{"run_id":"r${i}","instance_id":"a"}`)}]}`),
  ],
  [
    "an instance's runs",
    () =>
      instancesIn(`{"instances":[{"instance_id":"a","run_ids":[${entriesOf(250_000, (i) => `"r${i}"`)}]}]}`),
  ],
  [
    "a list of instances",
    () => instancesIn(`{"instances":[${entriesOf(60_000, (i) => `{"instance_id":"a${i}"}`)}]}`),
  ],
  [
    "fields that are not known",
    () => runsIn(`{"runs":[${entriesOf(15_000, (i) => runNamed(`r${i}`, `,"more${i}":1`))}]}`),
  ],
])("%s lets the event loop go on while it is read", async (_, read) => {
  expect(await turnsIn(read)).toBeGreaterThanOrEqual(5);
});
