// @module-tag slow
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { exit, RunvaultError } from "../../../src/model/error.ts";
import type { Message } from "../../../src/pipeline/tell/message.ts";
import { JobWorld } from "../../fixtures/pipeline/job-world.ts";

const down = () => new RunvaultError("server_error", "maintenance");

test("a gateway that is out of service at the beginning is waited for", async () => {
  await using world = await JobWorld.open(1, 2);
  const file = await world.write();
  await world.close();
  const notes: string[] = [];
  const note = (text: string) => {
    if (notes.push(text) === 1) void world.reopen();
  };
  const { exit: status, done } = await world.execute(file, { note });
  expect(status).toBe(exit.done);
  expect(done).toHaveLength(2);
  expect(notes.join("\n")).toMatch(/waiting for the gateway, which is unavailable[\s\S]*answers again after/);
});

test("so is one that goes out of service between runs: none of them fails for it", async () => {
  await using world = await JobWorld.open(1, 4);
  const file = await world.write({ parallel_runs: 1 });
  let asked = 0;
  world.onAsked = () => {
    if (++asked !== 14) return;
    world.failing = down();
    setTimeout(() => {
      world.failing = null;
    }, 300);
  };
  const { exit: status, notes, done, result } = await world.execute(file);
  expect(status).toBe(exit.done);
  expect(notes.join("\n")).toContain("maintenance");
  expect(done).toHaveLength(4);
  expect(result.states).toEqual({ COMPLETE: 4 });
});

test("what fails while the gateway answers concerns its run alone, and nobody waits", async () => {
  await using world = await JobWorld.open(1, 3);
  const file = await world.write();
  world.runs.sources[1]!.manners = { refuses: () => down() };
  const { exit: status, notes, done, result } = await world.execute(file);
  expect(status).toBe(exit.gateway);
  expect(notes).toEqual([]);
  expect(done).toHaveLength(3);
  expect(result.states).toEqual({ COMPLETE: 2, INCOMPLETE: 1 });
});

test("an outage is one line, one more at each interval and one at its end, and is reported before the deadline", async () => {
  await using world = await JobWorld.open(1, 1);
  const messages: Message[] = [];
  const hook = createServer(async (request, response) => {
    messages.push(JSON.parse(Buffer.concat(await request.toArray()).toString()));
    response.end();
  });
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  vi.stubEnv("OUTAGE_HOOK", `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`);
  const file = await world.write({
    notify: { unreachable_after: "30ms", webhook: { url_env: "OUTAGE_HOOK" } },
  });
  world.failing = down();
  const notes: string[] = [];
  const note = (text: string) => {
    // Node renews the date of answers once a second, and later on a busy machine
    if (text.startsWith("the gateway's clock is")) return;
    if (notes.push(text) === 3) world.failing = null;
  };
  const pauses = { firstPauseMs: 10, longestPauseMs: 20, noteEveryMs: 50 };
  expect((await world.execute(file, { note, pauses })).exit).toBe(exit.done);
  expect(notes.map((text) => text.replace(/\d+ ms|[\d.]+ s/, "TIME").split(":")[0])).toEqual([
    "waiting for the gateway, which is unavailable",
    "the gateway is still unavailable after TIME",
    "the gateway is still unavailable after TIME",
    "the gateway answers again after TIME",
  ]);
  hook.close();
  vi.unstubAllEnvs();
  expect(messages.map(({ worse, mended }) => [worse, mended].map((list) => list.length))).toEqual([
    [1, 0],
    [0, 1],
  ]);
  expect(messages[0]!.worse[0]!.text).toMatch(/^the gateway is unavailable: .*maintenance/);
});

// a page that a proxy shows with status 200 ended the night after half a second
test("a page of HTML with status 200 is waited for as a 503 is", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await world.write();
  const port = Number(new URL(world.url).port);
  await world.close();
  const web = createServer((_request, response) =>
    response.writeHead(200, { "content-type": "text/html" }).end("<h1>Back soon</h1>"),
  );
  await new Promise<void>((resolve) => web.listen(port, "127.0.0.1", resolve));
  const note = (text: string) => {
    if (!text.startsWith("waiting for the gateway")) return;
    web.closeAllConnections();
    web.close(() => void world.reopen());
  };
  const { exit: status, done } = await world.execute(file, { note });
  expect([status, done]).toEqual([exit.done, ["i1/r1 archived"]]);
});

test("at the deadline waiting ends, and is what kept the job from its work", async () => {
  await using world = await JobWorld.open(1, 2);
  const file = await world.write();
  world.failing = down();
  const { exit: status, result, runs } = await world.execute(file, { deadlineMs: 2_000 });
  expect(status).toBe(exit.gateway);
  expect(runs).toEqual([]);
  expect(result.error?.code).toBe("history_query_failed");
});

test("a stop by a signal while the gateway is down says both in the record, with the signal's status", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await world.write();
  world.failing = down();
  const stop = new AbortController();
  const error = new RunvaultError("interrupted", "stopped by SIGTERM", { status: exit.terminated });
  const note = () => stop.abort(error);
  const { exit: status, result } = await world.execute(file, { note, signal: stop.signal });
  expect([status, result.error?.code]).toEqual([exit.terminated, "interrupted"]);
  expect(result.error?.message).toMatch(
    /^stopped by SIGTERM while the gateway was unavailable: .*maintenance/,
  );
});

test("a refused token ends the job at once", async () => {
  await using world = await JobWorld.open(1, 1);
  await world.serve("this-is-the-right-token");
  const token = join(world.folder, "token");
  await writeFile(token, "this-is-the-wrong-token\n", { mode: 0o600 });
  const {
    exit: status,
    result,
    notes,
  } = await world.execute(await world.write({ gateway: { token: { file: token } } }));
  expect(status).toBe(exit.refused);
  expect(result.error?.code).toBe("unauthenticated");
  expect(notes).toEqual([]);
});

test("a token that turns over while the job goes on is read again", async () => {
  await using world = await JobWorld.open(1, 3);
  await world.serve("the-token-of-the-evening");
  const token = join(world.folder, "token");
  await writeFile(token, "the-token-of-the-evening\n", { mode: 0o600 });
  const file = await world.write({ gateway: { token: { file: token } }, parallel_runs: 1 });
  let turned: Promise<void> | undefined;
  const {
    exit: status,
    done,
    asked,
  } = await world.execute(file, {
    watcher: {
      run: (_run, number) => {
        if (number !== 2) return;
        turned = writeFile(token, "the-token-of-the-morning\n").then(() =>
          world.reopen("the-token-of-the-morning"),
        );
      },
    },
  });
  await turned;
  expect(status).toBe(exit.done);
  expect(done).toEqual(["i1/r1 archived", "i1/r2 archived", "i1/r3 archived"]);
  expect(asked.length).toBeGreaterThan(10);
});

test("a token that is not there when the job begins is in its record, as what else goes wrong", async () => {
  await using world = await JobWorld.open(1, 1);
  const file = await world.write({ gateway: { token: { file: join(world.folder, "none") } } });
  const { exit: status, result, asked } = await world.execute(file);
  expect(status).toBe(exit.usage);
  expect(asked).toEqual([]);
  expect(result).toMatchObject({ exit: exit.usage, requests: 0, error: { code: "invalid_argument" } });
  expect(result.troubles.map(({ kind }) => kind)).toEqual(["job"]);
});
