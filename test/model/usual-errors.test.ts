import { expect, test } from "vitest";
import { tableNamed } from "../../src/model/profile/table.ts";
import { filterRefused, instanceNotFound, notArchived, runNotFound } from "../../src/model/usual-errors.ts";

const run = { instanceId: "alpha", runId: "r-9" };

test("an instance that is not there comes with the way to those that are, by what was asked", () => {
  expect(instanceNotFound("alphax")).toMatchObject({
    code: "instance_not_found",
    message: 'the gateway has no instance "alphax"',
    place: { instance: "alphax" },
    hint: expect.stringContaining("runvault runs --gateway"),
  });
  expect(instanceNotFound("alphax", "archive")).toMatchObject({
    message: 'the gateway has no instance "alphax"',
    hint: expect.stringContaining("`runvault runs` lists"),
  });
  expect(instanceNotFound("alphax", "control")).toMatchObject({
    message: 'this server has no instance "alphax"',
    hint: expect.stringContaining("GET /instances"),
  });
});

test("a run that is not there comes with its instance's latest", () => {
  const known = ["r-1", "r-2", "r-3", "r-4", "r-5", "r-6"];
  expect(runNotFound(run, known)).toMatchObject({
    code: "run_not_found",
    message: 'instance "alpha" has no run "r-9"',
    place: { instance: "alpha", run: "r-9" },
    hint: "The latest runs of this instance: r-2, r-3, r-4, r-5, r-6.",
  });
  expect(runNotFound(run, []).hint).toBe("The instance has no runs.");
  expect(runNotFound(run).hint).toContain("runvault runs --gateway");
  const latest = runNotFound({ instanceId: "alpha", runId: "" });
  expect(latest).toMatchObject({ message: 'instance "alpha" has no runs', place: { instance: "alpha" } });
});

test("a run that the archive does not hold comes with the way to those that it does", () => {
  expect(notArchived(run)).toMatchObject({
    code: "not_archived",
    message: 'the archive has no run "r-9" of instance "alpha"',
    place: { instance: "alpha", run: "r-9" },
    hint: expect.stringContaining("`runvault runs` lists"),
  });
  expect(notArchived(run, "neither archive holds this run").message).toBe("neither archive holds this run");
});

test("a filter that does not apply comes with those that do", () => {
  const bars = tableNamed("bars");
  expect(filterRefused("account", bars)).toMatchObject({
    code: "invalid_argument",
    message: "the filter account does not apply to bars",
    place: { table: "bars" },
    hint: `The filters of bars are ${bars.filters.join(", ")}.`,
  });
});
