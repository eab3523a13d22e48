import { once } from "node:events";
import { expect, it } from "vitest";
import { cutDeadline } from "../../src/serve/http/client-deadline.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";

it.each([
  ["connect-timeout-ms", "9999999999", "2147483647"],
  ["connect-timeout-ms", "2147483648", "2147483647"],
  ["connect-timeout-ms", "2147483647", "2147483647"],
  ["connect-timeout-ms", "60000", "60000"],
  ["connect-timeout-ms", "99999999999", "99999999999"],
  ["connect-timeout-ms", "soon", "soon"],
  ["grpc-timeout", "99999999H", "2147483S"],
  ["grpc-timeout", "2147484S", "2147483S"],
  ["grpc-timeout", "2147483S", "2147483S"],
  ["grpc-timeout", "99999999n", "99999999n"],
  ["grpc-timeout", "5x", "5x"],
])("a client's %s of %s is taken as %s", (name, given, taken) => {
  const header = new Headers({ [name]: given });
  cutDeadline(header);
  expect(header.get(name)).toBe(taken);
});

it("a call with a deadline of months is answered, without a word from a timer", async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on("warning", onWarning);
  let server: Served | undefined;
  try {
    server = await serve({ source: new ArraySource({ fills: fills(1) }), host: "127.0.0.1", port: 0 });
    const { origin } = new URL(server.url);
    const ask = (headers: Record<string, string>) =>
      fetch(`${origin}/example.history.v1.HistoryService/ListInstances`, {
        method: "POST",
        body: new Uint8Array(),
        headers: { "content-type": "application/proto", "connect-protocol-version": "1", ...headers },
      });
    for (const headers of [{}, { "connect-timeout-ms": "9999999999" }]) {
      const answer = await ask(headers);
      expect(answer.status).toBe(200);
      expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(0);
    }
    // warnings are told in a turn of their own
    setImmediate(() => process.emit("warning", new Error("the last")));
    while (warnings.at(-1)?.message !== "the last") await once(process, "warning");
    expect(warnings).toHaveLength(1);
  } finally {
    process.off("warning", onWarning);
    await server?.close();
  }
});
