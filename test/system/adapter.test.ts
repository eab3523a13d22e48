import { createHmac } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";
import { start } from "../fixtures/command/command-process.ts";
import { inProject } from "../fixtures/command/project.ts";
import { someOf } from "../fixtures/trials/cases.ts";

const secret = "between us";
const started = 1_790_000_000_000_000_000n;
/** Fills of one run, at times of which three are shared. */
const fills = Array.from({ length: 12 }, (_, i) => {
  const ts = started + BigInt(i - (i % 3 === 2 ? 1 : 0)) * 1_000_000_007n;
  return {
    ts,
    line: `${i + 1},${ts},${ts},main,XV,BTC,t${i},${i % 2 ? "SELL" : "BUY"},10${i}.5,0.1,0.001,USD`,
  };
});

/** Fjord, as its documentation says. */
const fjord: RequestListener = (request, response) => {
  const { pathname, searchParams } = new URL(request.url!, "http://fjord");
  const time = request.headers["x-time"];
  const signature = createHmac("sha256", secret).update(`${time}${request.url}`).digest("hex");
  const answer = (status: number, lines: readonly string[]) =>
    response.writeHead(status, { "content-type": "text/csv" }).end(lines.map((line) => `${line}\n`).join(""));
  if (request.headers["x-signature"] !== signature) return answer(401, []);
  if (pathname === "/runs") return answer(200, [`first,${started},${fills.at(-1)!.ts + 1n}`]);
  if (searchParams.get("run") !== "first") return answer(404, []);
  const [from, to] = ["start", "end"].map((name) => searchParams.get(name));
  const within = fills.filter(({ ts }) => (!from || ts >= BigInt(from)) && (!to || ts < BigInt(to)));
  if (pathname === "/count") {
    return answer(200, [`${within.length},${within[0]?.ts ?? ""},${within.at(-1)?.ts ?? ""}`]);
  }
  const most = Number(searchParams.get("most") ?? within.length);
  return answer(
    200,
    within.slice(0, most).map(({ line }) => line),
  );
};

const server = createServer(fjord);
let folder: string;
let url: string;
let adapter: string;
const jobText = (module: string) =>
  JSON.stringify({
    ...{ version: 1, name: "fjord", archive: "from-job", run: "desk/first" },
    gateway: { url, adapter: module },
  });
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
  await mkdir(join(folder, "node_modules"));
  await symlink(inProject("."), join(folder, "node_modules", "runvault"));
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  adapter = join(folder, "my-gateway.ts");
  await writeFile(adapter, await readFile(inProject("docs/fjord-adapter.ts")));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

const env = { FJORD_SECRET: secret };
const runvault = (args: readonly string[], given: Record<string, string> = env) =>
  start(args, given).finished;

test("the example of an adapter archives its gateway whole, from the command line and from a job file", async () => {
  const archive = join(folder, "archive");
  const ended = await runvault([
    "archive",
    "desk/first",
    "--gateway",
    url,
    "--adapter",
    adapter,
    "--archive",
    archive,
    "--json",
  ]);
  expect(ended.stderr).not.toMatch(/error/i);
  expect(ended.status).toBe(0);
  const manifest = JSON.parse(await readFile(join(archive, "runs", "desk", "first.json"), "utf8"));
  expect(manifest.tables.fills).toMatchObject({
    state: "COMPLETE",
    proven: { certificate: { proof: "counted", rows: fills.length } },
  });
  const query = ["query", "SELECT trade_id, price FROM fills ORDER BY seq LIMIT 2", "--archive", archive];
  expect((await runvault([...query, "--format", "csv"])).stdout).toContain("t1,101.5");

  await writeFile(join(folder, "job.yaml"), jobText("./my-gateway.ts"));
  const ran = await runvault(["run", join(folder, "job.yaml")]);
  expect(`${ran.status} ${ran.stderr}`).toMatch(/^0 /);
});

const wrong: readonly (readonly [text: string, told: RegExp])[] = [
  ["export const fjord = 1;", /default export is not a function/],
  ["export default () => ({ label: 'x' });", /it lacks instances, runs, facts, document, rows/],
  ["export default () => { throw new Error('no secret'); };", /did not open: no secret/],
  ["export default (;", /cannot be loaded/],
];

test.each(someOf(wrong, 2))("a module that is no adapter, %s, is wrong usage", async (text, told) => {
  const file = join(folder, `wrong-${text.length}.mjs`);
  await writeFile(file, text);
  const ended = await runvault(["runs", "--gateway", url, "--adapter", file]);
  expect(ended.stderr).toMatch(told);
  expect(ended.status).toBe(2);
});

test("an adapter and a profile are not taken together", async () => {
  const profile = inProject("test/fixtures/foreign/epsilon.yaml");
  const ended = await runvault(["runs", "--gateway", url, "--adapter", adapter, "--profile", profile]);
  expect(ended.stderr).toContain("either an adapter or a profile");
  expect(ended.status).toBe(2);
});

test("a wrong secret is told in the gateway's words, and a job file names no module from elsewhere", async () => {
  const runs = ["runs", "--gateway", url, "--adapter", adapter];
  const ended = await runvault(runs, { FJORD_SECRET: "wrong" });
  expect(ended.stderr).toContain("Fjord refuses the signature");
  for (const module of ["/tmp/my-gateway.ts", "../my-gateway.ts", "./a/../../b.ts", "my-gateway"]) {
    await writeFile(join(folder, "wrong.yaml"), jobText(module));
    const checked = await runInside(["check", join(folder, "wrong.yaml")]);
    expect(checked.stderr + checked.stdout).toContain("must be the path of a module beside this file");
  }
});
