import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";

let folder: string;
let file: string;
let url: string;
/** The one token that is taken, and what becomes of the file once another is refused. */
let valid = "";
let onRefused: () => Promise<void> = async () => {};
const server = createServer(async (request, response) => {
  const isValid = request.headers.authorization === `Bearer ${valid}`;
  if (!isValid) await onRefused();
  response.writeHead(isValid ? 200 : 401, { "content-type": "application/json" });
  response.end(isValid ? '{"instances":[]}' : "{}");
});
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-token-file-"));
  file = join(folder, "token");
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`;
});
beforeEach(async () => {
  onRefused = async () => {};
  await writeFile(file, "evening-token\n", { mode: 0o600 });
});
afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const ask = (...args: string[]) =>
  runInside([...args, "--gateway", url, "--transport", "rest", "--retries", "0"]);

// a command that runs through the hour in which secrets turn over failed, where a job goes on
test("a token that is refused is read again from its file", async () => {
  valid = "morning-token";
  onRefused = () => writeFile(file, "morning-token\n");
  expect(await ask("runs", "--token-file", file)).toMatchObject({ status: 0 });
});

// "Set --token-file" says nothing to whoever has set it
test.each([
  ["runs", []],
  ["init", ["--out", "-"]],
  ["profile", ["draft", "--out", "-"]],
])("%s says of a wrong token that it was sent and refused, and how", async (command, args) => {
  valid = "another-token";
  const { status, stderr } = await ask(command, ...args, "--token-file", file);
  expect({ status, stderr }).toMatchObject({ status: 9 });
  expect(stderr).toContain("The token was sent, as Authorization: Bearer TOKEN, and the gateway refuses it");
  expect(stderr).not.toContain("evening-token");
  const none = await ask(command, ...args);
  expect(none.stderr).toContain("Set --token-file or RUNVAULT_TOKEN_FILE");
});

// the same of a check, whose findings are its output
test("profile check says of a wrong token that it was sent and refused", async () => {
  valid = "another-token";
  const profile = join(folder, "profile.yaml");
  await writeFile(profile, "profile: 1\nname: contract\nextends: default\n");
  const checked = await ask("profile", "check", "--profile", profile, "--token-file", file);
  expect(checked.stdout).toContain(
    "The token was sent, as Authorization: Bearer TOKEN, and the gateway refuses it",
  );
});

test.each([
  ["Bearer evening-token", 'the token begins with "Bearer ", which runvault adds'],
  ["evening token", "its character 8 is a space"],
  ["evening\ntoken", "its character 8 is a line break"],
  ["evening-tokén", "its character 12 is U+00E9"],
])("a file with %j is refused with what is wrong and where, and never shown", async (text, says) => {
  await writeFile(file, text);
  const fromFile = await ask("runs", "--token-file", file);
  expect(fromFile).toMatchObject({ status: 2 });
  expect(fromFile.stderr).toContain(`--token-file: the token`);
  for (const part of [says, `file ${file}`]) expect(fromFile.stderr).toContain(part);
  const fromVariable = await runInside(["runs", "--gateway", url], { env: { RUNVAULT_TOKEN: text } });
  expect(fromVariable).toMatchObject({ status: 2 });
  expect(fromVariable.stderr).toContain(says);
  for (const { stderr } of [fromFile, fromVariable]) expect(stderr).not.toContain(text);
});
