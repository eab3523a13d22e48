import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Served, serve } from "../../src/serve/server.ts";
import { smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { type Tamper, tamperWith } from "../fixtures/source/tampered-gateway.ts";

let folder: string;
let behind: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-archive-report-"));
  behind = await serve({ source: new ArraySource(worldRun, smallWorld(9)), host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await behind.close();
  await rm(folder, { recursive: true, force: true });
});

/** What `archive` says of fills and orders of a gateway that was tampered with. */
async function reported(tamper: Tamper, ...args: string[]) {
  await using server = await tamperWith(behind.url, tamper);
  const to = ["--archive", join(await mkdtemp(join(folder, "a-")), "archive"), "--tables", "fills,orders"];
  const from = ["--gateway", `${server.url}/api/v1`, "--retries", "0", "--transport", "rest"];
  return await runInside(["archive", "alpha/2022-01-01", ...from, ...to, ...args]);
}

/** The third of the fills has a price that is none, and more in it than anybody wants to read. */
const oddPrice: Tamper = async ({ table }, own) => {
  if (table !== "fills") return undefined;
  const { body, headers } = await own();
  const text = Buffer.from(body).toString();
  const odd = `"price":"1e5\\u001b[31m","note":"${"x".repeat(5000)}"`;
  return { status: 200, headers, body: text.replace(/"price":"2\.3"/, odd) };
};

test("why rows were set aside is told with an example, its value cut where it is long", async () => {
  const { status, stdout } = await reported(oddPrice);
  expect(status).toBe(4);
  expect(stdout).toContain("1 set aside");
  const line = stdout.split("\n").find((text) => text.includes("for example"));
  expect(line).toContain(
    'set aside from fills, for example: price is the string "1e5\\u001b[31m" where a decimal',
  );
  expect(line!.length).toBeLessThan(400);
  expect(stdout).toContain("rows set aside, each with its reason: ");
  expect(stdout).toMatch(/hint for fills: Look at the rows set aside, .*--accept-quarantine/);

  const { runs } = JSON.parse((await reported(oddPrice, "--json")).stdout);
  expect(runs[0].tables.fills).toMatchObject({
    state: "QUARANTINED",
    setAside: { reason: expect.stringContaining("price is the string"), row: expect.stringContaining("…") },
  });
  expect(runs[0].tables.orders.setAside).toBeNull();
});

test("what the gateway says of a table that it refuses stands in the report, without our token", async () => {
  const token = "s3cret-t0ken-of-the-gateway";
  const refusing: Tamper = ({ table }) =>
    table === "fills"
      ? {
          status: 409,
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            ok: false,
            error: { code: "of_tomorrow", message: `rebuilding until \u001b[1m6\u001b[0m; you are ${token}` },
          }),
        }
      : undefined;
  await using server = await tamperWith(behind.url, refusing);
  const dir = join(await mkdtemp(join(folder, "a-")), "archive");
  const args = ["archive", "alpha/2022-01-01", "--gateway", `${server.url}/api/v1`, "--transport", "rest"];
  const env = { RUNVAULT_TOKEN: token };
  const { status, stdout } = await runInside([...args, "--tables", "fills,orders", "--archive", dir], {
    env,
  });
  expect(status).toBe(9);
  expect(stdout).toMatch(
    /fills +INCOMPLETE .*refused: the gateway answered 409 .*: rebuilding until 6; you are \*\*\*/,
  );
  expect(stdout).toMatch(/orders +COMPLETE/);
  // nor is it in the archive
  const shown = await runInside(["runs", "--archive", dir, "--json"]);
  expect(shown.stdout).not.toContain("s3cret");
});

test("an attempt that brought nothing is told with no proof and no count of before", async () => {
  const source = new ArraySource(worldRun, smallWorld(9));
  const dir = join(await mkdtemp(join(folder, "a-")), "archive");
  const server = await serve({ source, host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  const args = [
    "archive",
    "alpha/2022-01-01",
    "--gateway",
    server.url,
    "--archive",
    dir,
    "--tables",
    "fills",
  ];
  expect((await runInside(args)).status).toBe(0);
  source.tables.set(
    "fills",
    source.tables.get("fills")!.slice(0, 3).concat(source.tables.get("fills")!.slice(5)),
  );
  source.storageVersion = "2";
  const { status, stdout } = await runInside(args);
  expect(status).toBe(4);
  expect(stdout).toMatch(/fills +UNVERIFIED +9 +none +shrunk: .*shown as proven before: COMPLETE, 9 rows/);
  const { runs } = JSON.parse((await runInside([...args, "--json"])).stdout);
  expect(runs[0].tables.fills).toMatchObject({ proof: "none", gatewayRows: null, proven: { rows: 9 } });
});

test("counts beside each other are numbers, what the gateway says of them too", async () => {
  const { runs } = JSON.parse((await reported(() => undefined, "--json", "--fingerprint")).stdout);
  const { rows, gatewayRows, rowHash } = runs[0].tables.fills;
  expect(rows).toBeGreaterThan(0);
  expect([gatewayRows, rowHash.rows]).toEqual([rows, rows]);
});

test("a warning of a run is told with it", async () => {
  const withoutSummary: Tamper = ({ path }) =>
    path.includes("/history/summary") ? { status: 200, headers: { "content-type": "text/html" } } : undefined;
  const { status, stdout } = await reported(withoutSummary);
  expect(status).toBe(0);
  expect(stdout).toContain("  warning: the summary document is not available: the answer is text/html");
  const { runs } = JSON.parse((await reported(withoutSummary, "--json")).stdout);
  expect(runs[0].warnings).toHaveLength(1);
});
