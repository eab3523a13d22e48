import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseFaults } from "../../src/cli/options/simulated-faults.ts";
import { runInside, startInside } from "../fixtures/command/command-inside.ts";

test("faults in answers and faults in instances are told apart by their kinds", () => {
  const { answers, instances } = parseFaults(["cut@fills:3", "start-fails@alpha-1*2", "status-502@summary"]);
  expect(answers.map(({ kind }) => kind)).toEqual(["cut", "status-502"]);
  expect(instances).toMatchObject([{ kind: "start-fails", target: "alpha-1", times: 2 }]);
});

test.each([
  ["start-fail@alpha-1", "Did you mean start-fails?"],
  ["stop-hang@alpha-1", "Did you mean stop-hangs?"],
  ["daemon-unreachabel@*", "Did you mean daemon-unreachable?"],
  ["cutt@fills:3", "Did you mean cut?"],
])("the misspelt kind of %s is told its nearest, in both lists", (text, hint) => {
  expect(() => parseFaults([text])).toThrow(
    expect.objectContaining({ code: "invalid_argument", hint: expect.stringContaining(hint) }),
  );
});

test.each([
  [
    [],
    "no run grows any more: by the clock all have ended; --clock '2024-01-01T00:00:00Z*60' begins where they do",
  ],
  [["--clock", "2023-12-31T00:00:00Z"], null],
  [["--clock", "2024-01-01T00:30:00Z"], null],
])("runvault simulate --growing %j says whether anything still grows", async (clock, note) => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-growing-"));
  try {
    const running = startInside([
      ...["simulate", "--growing", "--rows", "500", "--runs", "1", "--cache", folder],
      ...clock,
    ]);
    await running.firstLine();
    running.signal("SIGTERM");
    const { stderr } = await running.finished;
    if (note === null) expect(stderr).not.toContain("grows");
    else expect(stderr).toContain(note);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("what is told besides fits a narrow terminal", async () => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-narrow-"));
  try {
    const running = startInside(
      ["simulate", "--growing", "--rows", "500", "--runs", "1", "--cache", folder],
      {
        columns: 60,
      },
    );
    await running.firstLine();
    running.signal("SIGINT");
    const { stderr } = await running.finished;
    expect(stderr).toContain("no run grows any more");
    expect(stderr).toContain("Stopping (press Ctrl-C again to stop at once).");
    expect(stderr.split("\n").filter((line) => line.length > 60)).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("runvault simulate has both kinds, and refuses a fault in an instance that is not there", async () => {
  const folder = await mkdtemp(join(tmpdir(), "runvault-faults-"));
  try {
    const world = ["simulate", "--rows", "500", "--runs", "1", "--cache", folder];
    const faults = ["--fault", "runtime-unreachable@alpha-1", "--fault", "status-502@summary"];
    const running = startInside([...world, ...faults]);
    const url = await running.firstLine();
    const instance = await fetch(`${url}/instances/alpha-1`);
    expect(await instance.json()).toMatchObject({ runtimeState: "UNKNOWN" });
    expect((await fetch(`${url}/history/summary?instance=alpha-1`)).status).toBe(502);
    running.signal("SIGTERM");
    expect(await running.finished).toMatchObject({ status: 0 });

    const refused = await runInside([...world, "--fault", "stop-hangs@alpha-2"]);
    expect(refused).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("there is no instance alpha-2"),
    });
    expect(refused.stderr).toContain("The instances are alpha-1.");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
