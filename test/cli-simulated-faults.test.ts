import { expect, test } from "vitest";
import { parseFaults } from "../src/cli/simulated-faults.ts";

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
