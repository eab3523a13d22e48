import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mailText } from "../../../src/pipeline/tell/mail-text.ts";
import { messageOf } from "../../../src/pipeline/tell/message.ts";
import { sendMail } from "../../../src/pipeline/tell/send-mail.ts";
import { runInside } from "../../fixtures/command/command-inside.ts";
import { endedJob, failedJob, unprovenFills, worse } from "../../fixtures/tell/ended-job.ts";
import { type MailManners, MailServer } from "../../fixtures/tell/mail-server.ts";
import { Receiver } from "../../fixtures/tell/receiver.ts";

const secret = "p@ss:5ecret";

/** What `check --test-notify` says of a job with these notifiers. */
async function tried(notify: object, env: Record<string, string>) {
  const folder = await mkdtemp(join(tmpdir(), "runvault-mail-"));
  try {
    const file = join(folder, "nightly.yaml");
    const job = { version: 1, name: "nightly", archive: "archive", runs: {}, notify };
    await writeFile(file, JSON.stringify({ ...job, gateway: { url: "http://127.0.0.1:1/api/v1" } }));
    return await runInside(["check", file, "--test-notify", "--debug", "-v"], { env });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const mail = { url_env: "MAIL_URL", from: "runvault@example.com", to: ["a@example.com", "b@example.com"] };

async function mailed(manners: MailManners, login = "") {
  await using server = await MailServer.open(manners);
  const said = await tried({ mail }, { MAIL_URL: server.url(login) });
  return { ...said, mails: server.mails, wrong: server.wrong };
}

const login = `quant:${encodeURIComponent(secret)}@`;

test.each([
  ["no password", {}, "", ""],
  ["AUTH PLAIN", { auth: ["PLAIN", "LOGIN"] }, login, `quant:${secret}`],
  ["AUTH LOGIN", { auth: ["LOGIN"] }, login, `quant:${secret}`],
] as const)("a mail server gets a mail, with %s", async (_, manners, given, expected) => {
  const { status, stdout, mails, wrong } = await mailed(manners, given);
  expect({ status, stdout, wrong }).toEqual({ status: 0, stdout: "mail: ok\n", wrong: [] });
  expect(mails).toMatchObject([{ from: mail.from, to: mail.to, login: expected, isOverTls: false }]);
  const [{ lines }] = mails as [(typeof mails)[number]];
  const body = Buffer.from(lines.slice(lines.indexOf("")).join(""), "base64").toString("utf8");
  expect(body).toMatch(/^runvault job nightly on \S+: a test, nothing changed\.\n/);
});

test.each([
  ["550 no such user", "refused"],
  ["451 later", "server_error"],
])("a recipient answered with %s fails the mail, and nobody gets it", async (recipient, code) => {
  await using server = await MailServer.open({ auth: ["PLAIN"], recipient: `${recipient} ${secret}` });
  const address = {
    words: "the mail server",
    from: "the variable MAIL_URL",
    url: new URL(server.url(login)),
  };
  const sent = sendMail(address, { ...mail, text: "Subject: x\r\n\r\nx\r\n" }, new AbortController().signal);
  const why = `the mail server refused a recipient (${recipient.slice(0, 3)})`;
  await expect(sent).rejects.toMatchObject({ code, message: why });
  expect(server.mails).toEqual([]);
});

test("no part of what a mail server says, and of its address, is shown", async () => {
  const { status, stdout, stderr } = await mailed({ auth: ["PLAIN"], recipient: `550 ${secret}` }, login);
  expect({ status, stdout }).toMatchObject({ status: 3, stdout: expect.stringContaining("mail: failed: ") });
  expect(stdout + stderr).not.toMatch(/5ecret|127\.0\.0\.1/);
});

test("a server of another kind is named as such", async () => {
  const { status, stdout } = await mailed({ greeting: "HTTP/1.1 400 Bad Request" });
  expect(status).toBe(3);
  expect(stdout).toContain("mail: failed: the mail server does not speak SMTP (1 attempt)");
});

test("Slack and Teams get their own forms, each at its own address", async () => {
  await using receiver = await Receiver.open();
  const notify = { slack: { url_env: "SLACK_URL" }, teams: { url_env: "TEAMS_URL", on: ["worse"] } };
  const env = {
    SLACK_URL: `${receiver.url}/services/5ecretSlack1`,
    TEAMS_URL: `${receiver.url}/workflows/5ecretTeams1`,
  };
  expect(await tried(notify, env)).toMatchObject({ status: 0, stdout: "slack: ok\nteams: ok\n" });
  const bodyOf = (part: string) =>
    JSON.parse(receiver.received.find(({ target }) => target.includes(part))!.body) as unknown;
  expect(bodyOf("Slack")).toMatchObject({
    text: expect.stringContaining("a test"),
    blocks: [{ type: "header" }, {}],
  });
  expect(bodyOf("Teams")).toMatchObject({ attachments: [{ content: { type: "AdaptiveCard" } }] });
});

test.each([
  [
    { mail: { ...mail, url_env: "HTTP_URL" } },
    "must name a variable that holds an smtp:// or smtps:// address",
  ],
  [{ mail: { ...mail, to: ["nobody"] } }, "must be a mail address, such as quant@example.com"],
  [{ slack: { url_env: "NOT_SET" } }, "NOT_SET"],
])("a job file with %j is refused", async (notify, message) => {
  const { status, stdout, stderr } = await tried(notify, { HTTP_URL: "http://x", MAIL_URL: "smtp://x" });
  expect(status).toBe(2);
  expect(stdout + stderr).toContain(message);
});

test("a mail has headers of ASCII and all changes, however long the names in them", () => {
  const changes = worse(failedJob, { ...unprovenFills, text: `Ünï ${"ø".repeat(300)}` });
  const message = messageOf(endedJob({ changes }), { scrub: (text) => text });
  const text = mailText({ ...message, host: "wäre-1" }, mail);
  const [head = "", body = ""] = text.split("\r\n\r\n");
  expect(head).toMatch(/^[ -~\r\n]+$/);
  expect(Math.max(...text.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(78);
  const words = [...head.matchAll(/=\?utf-8\?B\?([^?]+)\?=/g)].map(([, word]) =>
    Buffer.from(word!, "base64"),
  );
  expect(Buffer.concat(words).toString("utf8")).toBe(
    "runvault job nightly on wäre-1 failed with exit status 4",
  );
  expect(Buffer.from(body, "base64").toString("utf8")).toContain(`- Ünï ${"ø".repeat(300)}\n`);
});
