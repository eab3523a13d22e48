import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseFaults } from "../../src/cli/simulated-faults.ts";
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
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
