import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requires } from "../fixtures/command/requirement.ts";
import { newAuthority, newCertificate, type Pair } from "../fixtures/command/tls-files.ts";
import { Corvid } from "../fixtures/foreign/corvid/corvid.ts";
import { factorsOf, trueFactors } from "../fixtures/foreign/factors-of.ts";

describe.skipIf(!requires("openssl"))("gRPC over TLS", () => {
  let authority: Pair;
  let stranger: Pair;
  let client: Pair;
  let foreign: Pair;
  let server: Pair;
  let corvid: Corvid;
  const pair = ({ cert, key }: Pair) => ({ cert, key });

  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "runvault-tls-grpc-"));
    authority = newAuthority(folder, "authority");
    stranger = newAuthority(folder, "stranger");
    client = newCertificate(folder, "client", authority);
    foreign = newCertificate(folder, "foreign", stranger);
    server = newCertificate(folder, "server", authority);
    corvid = await Corvid.open({}, { ...pair(server), ca: authority.cert, requestCert: true });
  });
  afterAll(async () => {
    await corvid[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  test("answers who knows the authority and has its certificate, by address and by name", async () => {
    const options = { ca: authority.cert, ...pair(client) };
    for (const url of [corvid.url, corvid.url.replace("127.0.0.1", "localhost")]) {
      const { lines, code } = await factorsOf(url, options);
      expect([code, lines]).toEqual(["", trueFactors(corvid)]);
    }
  });

  test("is not trusted without its authority, or under another name", async () => {
    for (const options of [pair(client), { ca: stranger.cert, ...pair(client) }]) {
      const { code, message } = await factorsOf(corvid.url, options);
      expect([code, message]).toEqual(["refused", expect.stringMatching(/certificate is not trusted/)]);
    }
    const other = corvid.url.replace("127.0.0.1", "127.0.0.2");
    expect(await factorsOf(other, { ca: authority.cert, ...pair(client) })).toMatchObject({
      lines: [],
      code: expect.stringMatching(/refused|unreachable/),
    });
  });

  test("turns away who has no certificate, or another authority's", async () => {
    const ca = authority.cert;
    for (const options of [{ ca }, { ca, ...pair(foreign) }]) {
      const { lines, code } = await factorsOf(corvid.url, options);
      // the reason may be overtaken by the close of the connection, and is then not known
      expect([lines, code]).toEqual([[], expect.stringMatching(/^(refused|unreachable)$/)]);
    }
  });

  test("is no gateway's where the server speaks HTTP/1.1 alone, whether or not it says so", async () => {
    const ca = authority.cert;
    const saying = createHttpsServer(pair(server), (_request, response) => response.end("hello"));
    const silent = createTlsServer(pair(server), (socket) => {
      socket.on("error", () => undefined);
      socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    for (const one of [saying, silent]) {
      await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve));
      const { code, message } = await factorsOf(`https://127.0.0.1:${(one.address() as AddressInfo).port}`, {
        ca,
      });
      expect([code, message]).toEqual(["not_a_gateway", expect.stringMatching(/does not speak/)]);
      one.close();
    }
  });

  test("and gRPC in the clear are told apart", async () => {
    await using clear = await Corvid.open();
    const secure = clear.url.replace("http:", "https:");
    expect((await factorsOf(secure, { ca: authority.cert })).code).toBe("not_a_gateway");
    const plain = corvid.url.replace("https:", "http:");
    expect((await factorsOf(plain)).code).toMatch(/^(not_a_gateway|unreachable)$/);
  });
});
