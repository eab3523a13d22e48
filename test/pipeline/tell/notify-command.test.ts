import { mkdtemp, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { messageSchema } from "../../../src/pipeline/tell/message.ts";
import { runInside } from "../../fixtures/command/command-inside.ts";
import { answers, Receiver } from "../../fixtures/tell/receiver.ts";

async function jobFile(more: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "notify-"));
  const file = join(folder, "nightly.yaml");
  const head = `version: 1\nname: nightly\ngateway: { url: http://127.0.0.1:1/api/v1 }\narchive: archive\nruns: {}\n`;
  await writeFile(file, head + more);
  return file;
}

const all = `notify:
  heartbeat: { url_env: HEARTBEAT_URL }
  webhook: { url_env: ALERT_URL }
metrics: { textfile: nightly.prom }
`;

test("`runvault check FILE --test-notify` tries everyone whom the file names, and writes no figures", async () => {
  await using receiver = await Receiver.open();
  const file = await jobFile(all);
  const env = {
    HEARTBEAT_URL: `${receiver.url}/beat/5ecretBeat1`,
    ALERT_URL: `${receiver.url}/hook/5ecretHook1`,
  };
  const text = await runInside(["check", file, "--test-notify"], { env });
  expect(text).toEqual({ status: 0, stdout: "heartbeat: ok\nwebhook: ok\ntextfile: ok\n", stderr: "" });
  expect(receiver.targets.sort()).toEqual([
    "GET /beat/5ecretBeat1",
    "GET /beat/5ecretBeat1/start",
    "POST /hook/5ecretHook1",
  ]);
  const posted = receiver.received.find(({ method }) => method === "POST")!;
  expect(messageSchema.parse(JSON.parse(posted.body))).toMatchObject({
    kind: "test",
    job: "nightly",
    exit: 0,
  });
  expect(await readdir(join(file, ".."))).toEqual(["nightly.yaml"]);
  const json = await runInside(["check", file, "--test-notify", "--json"], { env });
  expect(json.status).toBe(0);
  expect(JSON.parse(json.stdout)).toEqual({
    ok: true,
    told: ["heartbeat", "webhook", "textfile"].map((to) => ({ to, ok: true, attempts: 1, error: null })),
  });
});

test("says who could not be told, why and what to do, and shows no address, with --debug neither", async () => {
  await using receiver = await Receiver.open(answers(403));
  const file = await jobFile(all.replace("nightly.prom", "missing/nightly.prom"));
  const env = {
    HEARTBEAT_URL: `${receiver.url}/beat/5ecretBeat1?k=hunter2`,
    ALERT_URL: `${receiver.url}/5ecretHook1`,
  };
  const { status, stdout, stderr } = await runInside(["check", file, "--test-notify", "--debug", "-v"], {
    env,
  });
  expect({ status, stdout }).toEqual({
    status: 3,
    stdout: [
      "heartbeat: failed: the heartbeat answered with status 403 (1 attempt)",
      "  hint: Check the variable HEARTBEAT_URL: the address may be wrong, or no longer valid.",
      "webhook: failed: the webhook answered with status 403 (1 attempt)",
      "  hint: Check the variable ALERT_URL: the address may be wrong, or no longer valid.",
      "textfile: failed: the metrics file nightly.prom could not be written (ENOENT) (1 attempt)",
      "  hint: Check metrics.textfile: its folder must exist, and the job's user must be able to write to it.",
      "",
    ].join("\n"),
  });
  // each failure was also a line of the log
  expect(stderr).not.toContain("warn");
  expect(stdout + stderr).not.toMatch(/5ecret|hunter2|127\.0\.0\.1/);
  const json = await runInside(["check", file, "--test-notify", "--json"], { env });
  expect(json.status).toBe(3);
  expect(JSON.parse(json.stdout)).toMatchObject({
    ok: false,
    told: [{ to: "heartbeat", ok: false }, {}, {}],
  });
});

test("a Pushgateway gets no figures", async () => {
  await using receiver = await Receiver.open(answers(202));
  const file = await jobFile(`metrics: { pushgateway: "${receiver.url}" }\n`);
  expect((await runInside(["check", file, "--test-notify"])).stdout).toBe("pushgateway: ok\n");
  expect(receiver.received).toMatchObject([{ method: "POST", target: "/metrics/job/nightly", body: "" }]);
});

test("nobody to be told is nothing to try", async () => {
  const told = await runInside(["check", await jobFile(""), "--test-notify"]);
  expect(told).toEqual({ status: 0, stdout: "the job file has no notifiers\n", stderr: "" });
});

test("several files are refused: their results would be one text after another", async () => {
  const { status, stderr } = await runInside([
    "check",
    await jobFile(""),
    await jobFile(""),
    "--test-notify",
  ]);
  expect(status).toBe(2);
  expect(stderr).toContain("--test-notify takes one file");
});

test("a file with errors is checked instead", async () => {
  const file = await jobFile("notify: { webhook: { url_env: ALERT_URL } }\n");
  const { status, stdout } = await runInside(["check", file, "--test-notify"], { env: {} });
  expect(status).toBe(2);
  expect(stdout).toContain("must name a variable that is set in the environment");
});
