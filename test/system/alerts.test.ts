import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { metricsText } from "../../src/pipeline/tell/metrics.ts";
import { inProject } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { endedJob } from "../fixtures/tell/ended-job.ts";

const rules = inProject("pipelines/alerts/runvault.rules.yaml");
const document = readFileSync(inProject("docs/notifications.md"), "utf8");

function promtool(args: readonly string[], input = "") {
  const { status, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
  return { status, stdout, stderr };
}

const figures = async (exit: number) => await metricsText({ ...endedJob({}, exit), notifiersFailed: 1 });

test.skipIf(!requires("promtool")).each([0, 4])(
  "promtool finds nothing to mend in the figures of a job with exit status %i",
  async (exit) => {
    const { status, stdout, stderr } = promtool(["check", "metrics"], await figures(exit));
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
  },
);

test.skipIf(!requires("promtool"))("the alert rules are sound, and fire when they are to", () => {
  const checked = promtool(["check", "rules", "--lint=all", "--lint-fatal", rules]);
  expect(checked).toMatchObject({ status: 0, stderr: "" });
  const tested = promtool(["test", "rules", inProject("test/pipeline/tell/runvault.rules.test.yaml")]);
  expect(tested).toMatchObject({ status: 0 });
});

test("the document has every metric and every alert, and the rules ask for metrics that there are", async () => {
  const text = await figures(0);
  const metrics = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!);
  const told = new Set([...document.matchAll(/`(runvault_\w+)`/g)].map(([, name]) => name!));
  expect([...told].sort()).toEqual([...metrics].sort());
  const file = readFileSync(rules, "utf8");
  const { groups } = parse(file) as { groups: { rules: { alert: string; expr: string }[] }[] };
  const alerts = groups.flatMap((group) => group.rules);
  const [, table = ""] = document.split("## Alerts");
  expect([...table.matchAll(/^\| `(\w+)`/gm)].map(([, alert]) => alert)).toEqual(
    alerts.map(({ alert }) => alert),
  );
  const asked = alerts.flatMap(({ expr }) => [...expr.matchAll(/runvault_\w+/g)].map(([name]) => name));
  expect(asked.filter((name) => !metrics.includes(name))).toEqual([]);
});
