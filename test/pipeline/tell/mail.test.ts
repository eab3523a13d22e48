import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bodyOf } from "../../../src/pipeline/tell/mail-text.ts";
import { messageOf, titleOf } from "../../../src/pipeline/tell/message.ts";
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

/** Sends a mail to the address of a server. */
async function send(
  url: string,
  { subject, text } = { subject: "x", text: "x" },
  signal = new AbortController().signal,
) {
  const address = { words: "the mail server", from: "the variable MAIL_URL", url: new URL(url) };
  const { from, to } = mail;
  const date = new Date("2026-03-02T06:00:00Z");
  await sendMail(address, { from, to, date, subject, text }, signal);
}

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
  // a long name of this machine breaks the line
  const body = lines
    .slice(lines.indexOf("") + 1)
    .join("\n")
    .replaceAll("=\n", "");
  expect(body).toMatch(/^runvault job nightly on \S+: a test, nothing changed\.\n/);
});

test.each([
  ["the first", ["550 no such user"], "refused"],
  ["the second, for now", ["250 ok", "451 later"], "server_error"],
  ["every one", ["550 no such user", "550 no such user"], "refused"],
])("a server that refuses a recipient, %s, gets no mail for the others", async (_, answers, code) => {
  const recipients = answers.map((answer) => `${answer} ${secret}`);
  await using server = await MailServer.open({ auth: ["PLAIN"], recipients });
  const why = `the mail server refused a recipient (${answers.at(-1)!.slice(0, 3)})`;
  await expect(send(server.url(login))).rejects.toMatchObject({ code, message: why });
  expect(server.mails).toEqual([]);
});

test("a password goes to no other machine without TLS", async () => {
  await using server = await MailServer.open({ auth: ["PLAIN"] });
  // this machine too, but not by a name that says so
  const sent = send(server.url(login).replace("127.0.0.1", "0.0.0.0"));
  const message = "the mail server offers no TLS, so it gets no password";
  await expect(sent).rejects.toMatchObject({ code: "refused", message });
  expect({ wrong: server.wrong, mails: server.mails }).toEqual({ wrong: ["ready: STARTTLS"], mails: [] });
});

test("a server that takes no password gets no mail without one", async () => {
  await using server = await MailServer.open();
  const message = "the mail server refused the password (503)";
  await expect(send(server.url(login))).rejects.toMatchObject({ code: "refused", message });
  expect(server.mails).toEqual([]);
});

test("a signal ends a mail to a server that says nothing, and the connection", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const controller = new AbortController();
  const url = `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sent = send(url, undefined, controller.signal);
  const [socket] = (await once(server, "connection")) as [Socket];
  controller.abort(new Error("over"));
  await expect(sent).rejects.toThrow("over");
  await once(socket.resume(), "close");
  server.close();
});

test("no part of what a mail server says, and of its address, is shown", async () => {
  const { status, stdout, stderr } = await mailed({ auth: ["PLAIN"], recipients: [`550 ${secret}`] }, login);
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

test("a mail has headers of ASCII and all changes, however long the names in them", async () => {
  const changes = worse(failedJob, { ...unprovenFills, text: `Ünï ${"ø".repeat(300)}` });
  const message = { ...messageOf(endedJob({ changes }), { scrub: (text) => text }), host: "wäre-1" };
  await using server = await MailServer.open();
  await send(server.url(), { subject: titleOf(message), text: bodyOf(message) });
  const [{ lines }] = server.mails as [(typeof server.mails)[number]];
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(78);
  const head = lines.slice(0, lines.indexOf(""));
  expect(head.join("")).toMatch(/^[ -~]+$/);
  expect(head).toEqual(
    expect.arrayContaining(["Auto-Submitted: auto-generated", "Date: Mon, 02 Mar 2026 06:00:00 +0000"]),
  );
  const [, words = ""] =
    /Subject: =\?UTF-8\?Q\?(.*)\?=/.exec(head.join("").replaceAll("?= =?UTF-8?Q?", "")) ?? [];
  const subject = decodeURIComponent(words.replaceAll("_", " ").replaceAll("=", "%"));
  expect(subject).toBe("runvault job nightly on wäre-1 failed with exit status 4");
  const body = Buffer.from(lines.slice(head.length).join(""), "base64").toString("utf8");
  expect(body).toContain(`- Ünï ${"ø".repeat(300)}\n`);
});
