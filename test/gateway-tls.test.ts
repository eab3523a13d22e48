import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openGateway } from "../src/gateway/open-gateway.ts";
import type { GatewayOptions } from "../src/gateway/options.ts";
import { transportChoices } from "../src/gateway/transport-choice.ts";
import { RunvaultError } from "../src/model/error.ts";
import { type Served, serve } from "../src/serve/server.ts";
import { smallWorld, worldRun } from "./archived-world.ts";
import { ArraySource } from "./array-source.ts";
import { Authority, type Certificate } from "./certificates.ts";
import { run } from "./cli-process.ts";
import { requires } from "./requirement.ts";

describe.skipIf(!requires("openssl"))("a gateway with certificates of its own authority", () => {
  let folder: string;
  let server: Served;
  let authority: Authority;
  let stranger: Authority;
  let client: Certificate;
  let foreign: Certificate;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "runvault-tls-"));
    authority = await Authority.create(folder, "authority");
    stranger = await Authority.create(folder, "stranger");
    client = await authority.sign("client");
    foreign = await stranger.sign("foreign");
    const { cert, key } = await authority.sign("server", "IP:127.0.0.1");
    server = await serve({
      source: new ArraySource(worldRun, smallWorld()),
      host: "127.0.0.1",
      port: 0,
      tls: { cert, key, clientCa: authority.own.cert },
    });
  });
  afterAll(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  describe.each(transportChoices)("over %s", (transport) => {
    async function codeOf(options: Partial<GatewayOptions>): Promise<string | undefined> {
      await using gateway = openGateway({ baseUrl: server.url, retries: 0, ...options }, transport);
      try {
        expect(await gateway.instances()).toHaveLength(1);
        let bytes = 0;
        for await (const chunk of gateway.rows({ ...worldRun, table: "fills" })) bytes += chunk.byteLength;
        expect(bytes).toBeGreaterThan(0);
        return undefined;
      } catch (thrown) {
        if (thrown instanceof RunvaultError) return thrown.code;
        throw thrown;
      }
    }
    const pair = ({ cert, key }: Certificate) => ({ cert, key });

    test("answers who knows the authority and has its certificate", async () => {
      expect(await codeOf({ ca: authority.own.cert, ...pair(client) })).toBeUndefined();
    });

    test("is not trusted without its authority", async () => {
      expect(await codeOf(pair(client))).toBe("refused");
      expect(await codeOf({ ca: stranger.own.cert, ...pair(client) })).toBe("refused");
    });

    test("turns away who has no certificate, or another authority's", async () => {
      const { cert: ca } = authority.own;
      expect(await codeOf({ ca })).not.toBeUndefined();
      expect(await codeOf({ ca, ...pair(foreign) })).not.toBeUndefined();
    });

    test("is archived by --ca, --cert and --key", async () => {
      const files = ["--ca", authority.own.certFile, "--cert", client.certFile, "--key", client.keyFile];
      const target = [
        "archive",
        "alpha/2022-01-01",
        "--gateway",
        server.url,
        "--archive",
        join(folder, transport),
      ];
      const { status, stdout } = await run([...target, ...files, "--transport", transport, "--json"]);
      expect(JSON.parse(stdout)).toMatchObject({ exit: 0, runs: [{ state: "COMPLETE" }] });
      expect(status).toBe(0);
    });
  });
});
