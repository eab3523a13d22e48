import { afterAll, beforeAll, expect, test } from "vitest";
import { type FilterName, filterNames, tables } from "../../src/model/profile/table.ts";
import { envelopeFault, HostileTarget, targetRun } from "../fixtures/served/hostile-target.ts";
import { fewHostileTexts, hostileTexts } from "../fixtures/served/hostile-values.ts";

let target: HostileTarget;
beforeAll(async () => {
  target = await HostileTarget.open();
});
afterAll(async () => {
  await target[Symbol.asyncDispose]();
});

const { instanceId, runId } = targetRun;
/** Statuses that the interface document and the contract know of for what a client did. */
const documented = [200, 400, 404, 409, 413, 431];

/** Asks each path, some at a time, and gives what is wrong with the answers. */
async function faultsOf(requests: readonly { method?: string; path: string }[]): Promise<string[]> {
  const faults: string[] = [];
  const left = [...requests];
  const worker = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { method = "GET", path } = next;
      const answer = await fetch(`${target.url}${path}`, { method });
      const text = await answer.text();
      const told: string[] = [];
      if (!documented.includes(answer.status)) told.push(`status ${answer.status}`);
      // what is refused before its path is known has the envelope of the control plane
      const plane = answer.status === 431 ? "/" : new URL(answer.url).pathname.replace("/api/v1", "");
      if (answer.status !== 200) told.push(envelopeFault(plane, text));
      told.push(...target.leaks(text), ...target.leaks(JSON.stringify([...answer.headers])));
      for (const fault of told) if (fault !== "") faults.push(`${method} ${path.slice(0, 300)}: ${fault}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return faults;
}

const rowNames = (filters: readonly string[]) => ["instance", "run_id", "from", "to", "limit", ...filters];
/** Every route that takes parameters, with those it takes. */
const taking: readonly (readonly [path: string, names: readonly string[]])[] = [
  ...tables.map(({ path, filters }) => [path, rowNames(filters)] as const),
  ["/history/summary", ["instance", "run_id"]],
  ["/history/runs", ["instance"]],
  ["/history/resources", ["instance", "run_id"]],
  ["/history/storage", ["instance", "run_id", "from", "to"]],
  ["/runtime/status", ["instance"]],
  ["/runtime/resources", ["instance"]],
  ["/runtime/query/resources", ["instance"]],
  [`/instances/${instanceId}/logs`, ["tail", "follow"]],
];
/** Every place in a path that a client fills in. */
const places: readonly (readonly [method: string, path: string])[] = [
  ["GET", "/instances/VALUE"],
  ["GET", "/instances/VALUE/health"],
  ["GET", "/instances/VALUE/logs"],
  ["GET", "/instances/VALUE/ws"],
  ["POST", "/instances/VALUE/start"],
  ["POST", "/instances/VALUE/stop"],
  ["POST", "/instances/VALUE/restart"],
  ["GET", `/runtime/query/VALUE?instance=${instanceId}`],
  ["GET", "/metrics/instances/VALUE"],
  ["GET", "/history/VALUE"],
  ["GET", "/VALUE"],
  ["DELETE", "/instances/VALUE"],
];
/** What no encoder makes. */
const rawValues = ["%", "%zz", "%ff%fe", "%c0%ae%c0%ae/", "..%2f..%2farchive.json", "%00", "a%0d%0ab"];
const fewValues = [...fewHostileTexts.map(encodeURIComponent), "%zz"];
const isFilter = (name: string) => filterNames.includes(name as FilterName);
const values = [...hostileTexts.map(encodeURIComponent), ...rawValues];

test.each(taking)("%s takes no hostile value in any parameter for more than a value", async (path, names) => {
  const usual = { instance: instanceId, run_id: runId };
  const requests = names.flatMap((name) =>
    (isFilter(name) ? fewValues : values).map((value) => {
      const rest = Object.entries(usual).filter(([other]) => other !== name && names.includes(other));
      return { path: `${path}?${[...rest, [name, value]].map((pair) => pair.join("=")).join("&")}` };
    }),
  );
  // names that no route takes, given twice, as a list, or in a heap
  const query = `instance=${instanceId}`;
  for (const name of ["nothing", "__proto__", "constructor", "instance[]", "run_id[$ne]", "sql", "path"]) {
    requests.push({ path: `${path}?${query}&${name}=1` });
  }
  requests.push({ path: `${path}?${query}&${query}` }, { path: `${path}?${"a=1&".repeat(2500)}` });
  expect(await faultsOf(requests)).toEqual([]);
});

test("no hostile value in a path is more than a name that is not there", async () => {
  const requests = places.flatMap(([method, path]) =>
    values.map((value) => ({ method, path: path.replace("VALUE", value) })),
  );
  expect(await faultsOf(requests)).toEqual([]);
});

test("windows that are reversed, empty or out of all time give no rows, or a refusal", async () => {
  const least = "-9223372036854775808";
  const most = "9223372036854775807";
  const windows: readonly (readonly [from: string, to: string, status: number])[] = [
    ["2", "1", 400],
    [most, least, 400],
    [least, most, 200],
    [least, least, 200],
    [most, most, 200],
    ["0", "0", 200],
    ["-1", "1", 200],
    ["2022-01-02T00:00:00Z", "2022-01-01T00:00:00Z", 400],
  ];
  for (const [from, to, status] of windows) {
    for (const filter of ["", "&symbol=A"]) {
      const query = `instance=${instanceId}&run_id=${runId}&from=${from}&to=${to}${filter}`;
      const answer = await fetch(`${target.url}/history/fills?${query}`);
      const rows = (await answer.text()).split("\n").length - 1;
      expect([from, to, answer.status]).toEqual([from, to, status]);
      if (from === least && to === most) expect(rows).toBeGreaterThan(10);
      else if (status === 200) expect(rows).toBe(0);
    }
  }
});

test("a filter that is SQL filters by its text: not a row comes that it does not equal", async () => {
  for (const value of hostileTexts.slice(0, 14)) {
    const query = new URLSearchParams({ instance: instanceId, run_id: runId, symbol: value });
    const answer = await fetch(`${target.url}/history/fills?${query}`);
    expect([value, answer.status, await answer.text()]).toEqual([value, 200, ""]);
  }
});

test("after all that nothing is changed, nothing is broken, and nothing was logged as a fault of ours", async () => {
  expect(await target.trouble()).toBe("");
  const { status, stderr } = await target.stop();
  expect(status).toBe(0);
  expect(stderr).not.toMatch(/warn|error|internal|Exception/i);
});
