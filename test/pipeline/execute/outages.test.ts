// @module-tag slow
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exit, RunvaultError } from "../../../src/model/error.ts";
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
  expect(notes.join("\n")).toMatch(/is out of service, and waited for[\s\S]*answers again after/);
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

test("at the deadline waiting ends, and is what kept the job from its work", async () => {
  await using world = await JobWorld.open(1, 2);
  const file = await world.write();
  world.failing = down();
  const { exit: status, result, runs } = await world.execute(file, { deadlineMs: 2_000 });
  expect(status).toBe(exit.gateway);
  expect(runs).toEqual([]);
  expect(result.error?.code).toBe("history_query_failed");
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
