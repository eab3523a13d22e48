import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

let valid = "evening";
const asked: string[] = [];
const server = createServer((request, response) => {
  asked.push(request.headers.authorization ?? "");
  const isValid = request.headers.authorization === `Bearer ${valid}`;
  response.writeHead(isValid ? 200 : 401, { "content-type": "application/json" });
  response.end(isValid ? '{"instances":[]}' : "{}");
});
let baseUrl: string;
beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`;
});
afterAll(() => void server.close());

const open = (renewToken: () => Promise<string>) =>
  openGateway({ baseUrl, token: "evening", renewToken, retry: quickRetry({ retries: 0 }) }, "rest");

test("a token that is refused is asked for again, once for all requests that meet it, and used from then on", async () => {
  let renewed = 0;
  await using gateway = open(async () => {
    renewed++;
    return "morning";
  });
  valid = "evening";
  await gateway.instances();
  expect(renewed).toBe(0);
  valid = "morning";
  await Promise.all([gateway.instances(), gateway.instances()]);
  expect(renewed).toBe(1);
  asked.length = 0;
  await gateway.instances();
  expect(asked).toEqual(["Bearer morning"]);
});

test.each(["evening", "", "two words"])("the refusal stands where %j is all there is", async (now) => {
  await using gateway = open(async () => now);
  valid = "morning";
  asked.length = 0;
  await expect(gateway.instances()).rejects.toMatchObject({ code: "unauthenticated" });
  expect(asked).toEqual(["Bearer evening"]);
});
