import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tokenLine } from "../../src/serve/auth/token-list.ts";
import { serve } from "../../src/serve/server.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { type RunningInside, runInside, startInside } from "../fixtures/command/command-inside.ts";

const token = "0123456789abcdef-round-trip";
const tableArgs = ["--all", "--finished", "--quiet"];
let folder: string;
let served: RunningInside;
let url: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-round-trip-"));
  await using world = await openSimulator({ cacheDir: join(folder, "worlds"), runs: 2, rows: 1_000 });
  const simulated = await serve({ source: world, control: world, host: "127.0.0.1", port: 0 });
  const args = ["archive", "--gateway", simulated.url, "--archive", join(folder, "a"), ...tableArgs];
  expect(await runInside(args)).toMatchObject({ status: 0 });
  await simulated.close();
  await writeFile(join(folder, "tokens"), tokenLine(token, "nightly", ["*"]));
  await writeFile(join(folder, "token"), token);
  served = startInside([
    "serve",
    "--archive",
    join(folder, "a"),
    "--tokens",
    join(folder, "tokens"),
    "--access-log",
    join(folder, "log"),
  ]);
  url = await served.firstLine();
});
afterAll(async () => {
  served.signal("SIGTERM");
  await served.finished;
  await rm(folder, { recursive: true, force: true });
});

test.each([
  ["rest", "b"],
  ["rpc", "c"],
])("an archive made over %s from a served archive equals it", async (transport, name) => {
  const copy = join(folder, name);
  const to = ["--archive", copy, "--transport", transport, "--token-file", join(folder, "token")];
  expect(await runInside(["archive", "--gateway", url, ...to, ...tableArgs])).toMatchObject({ status: 0 });
  const { status, stdout } = await runInside(["maintain", "diff", join(folder, "a"), copy]);
  expect([status, stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "equal"]);
});

test("both copies are equal, and rows went over both transports", async () => {
  expect(await runInside(["maintain", "diff", join(folder, "b"), join(folder, "c")])).toMatchObject({
    status: 0,
  });
  const lines = (await readFile(join(folder, "log"), "utf8")).trimEnd().split("\n");
  const entries = lines.map((line) => JSON.parse(line) as { path: string; token?: string; table?: string });
  const rows = entries.filter(({ table, token: whose }) => table !== undefined && whose === "nightly");
  expect(new Set(rows.map(({ path }) => (path.includes("Service/") ? "rpc" : "rest")))).toEqual(
    new Set(["rest", "rpc"]),
  );
  expect(lines.join("")).not.toContain(token);
});

test("the server ends its work when it is told to", async () => {
  served.signal("SIGTERM");
  expect((await served.finished).status).toBe(0);
});

test.each([
  [["--host", "0.0.0.0"], "--tokens FILE"],
  [["--host", "::"], "--tokens FILE"],
  [["--cors", "https://desk.example/path"], "must be an origin"],
  [["--tokens", "/nothing/at-all"], "cannot be read"],
  [["--access-log", "/nothing/at-all"], "cannot be written"],
  [["--archive", "/nothing/at-all"], "no such folder"],
])("serve %j is wrong usage", async (args, says) => {
  const { status, stderr, stdout } = await runInside(["serve", "--archive", join(folder, "a"), ...args]);
  expect([status, stdout, stderr]).toEqual([2, "", expect.stringContaining(says)]);
});
