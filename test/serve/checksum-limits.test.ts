import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import type { FactsRequest, RunRef } from "../../src/model/source.ts";
import type { TimeBounds } from "../../src/model/time.ts";
import type { ServeLimits } from "../../src/serve/history/limited-source.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { historyClient } from "../fixtures/served/rpc-clients.ts";
import { ArraySource, fills } from "../fixtures/served/serve-source.ts";

const path = "/history/storage?instance=alpha&run_id=r1";
const checksum = `${path}&with_checksum=true&table=fills`;

/** Scans that each last until they are let go, or given up. */
class SlowScans extends ArraySource {
  /** Of the scans under way, and of those that were. */
  readonly begun: { readonly done: () => void; gaveUp: boolean }[] = [];
  #told = Promise.withResolvers<void>();

  override async facts(run: RunRef, bounds: TimeBounds, signal?: AbortSignal, asked?: FactsRequest) {
    if (asked?.withHash === true) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const scan = { done: resolve, gaveUp: false };
      this.begun.push(scan);
      this.#told.resolve();
      this.#told = Promise.withResolvers();
      signal?.addEventListener("abort", () => {
        scan.gaveUp = true;
        reject(signal.reason);
      });
      await promise;
    }
    return await super.facts(run, bounds, signal, asked);
  }

  /** Resolves once so many scans have begun. */
  async began(count: number): Promise<void> {
    while (this.begun.length < count) await this.#told.promise;
  }
}

const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function served(limits: ServeLimits = {}): Promise<{ server: Served; source: SlowScans }> {
  const source = new SlowScans({ fills: fills(10) });
  const server = await serve({ source, limits, host: "127.0.0.1", port: 0, onError: () => {} });
  open.push(server);
  return { server, source };
}

test("scans for checksums take turns, eight may wait, and whoever comes beyond is told to come again", async () => {
  const { server, source } = await served({ queries: 1 });
  const statuses: number[] = [];
  const ask = async () => {
    const answer = await fetch(`${server.url}${checksum}`);
    statuses.push(answer.status);
    return answer;
  };
  const first = ask();
  await source.began(1);
  const others = Array.from({ length: 12 }, ask);
  await expect.poll(() => statuses).toEqual([429, 429, 429, 429]);
  const refused = await ask();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
  expect(await refused.json()).toMatchObject({ error: { code: "rate_limited" } });
  const call = historyClient(server).getStorageFacts({
    instanceId: "alpha",
    runId: "r1",
    withChecksum: true,
  });
  expect(await call.catch((thrown) => ConnectError.from(thrown).code)).toBe(Code.ResourceExhausted);
  // they take nothing from the queries that may run at a time
  expect((await fetch(`${server.url}${path}`)).status).toBe(200);
  expect((await fetch(`${server.url}/history/fills?instance=alpha&run_id=r1`)).status).toBe(200);
  for (let n = 1; n <= 9; n++) {
    await source.began(n);
    expect(source.begun.length).toBe(n);
    source.begun[n - 1]!.done();
  }
  await Promise.all([first, ...others]);
  expect(statuses.slice(5)).toEqual(Array(9).fill(200));
});

test("a scan that takes too long is given up, whatever other queries may take", async () => {
  const { server, source } = await served({ checksumMs: 30, queryMs: 10_000 });
  const answer = await fetch(`${server.url}${checksum}`);
  expect([answer.status, await answer.json()]).toEqual([
    413,
    { ok: false, error: { code: "limit_exceeded", message: expect.stringContaining("30 ms") } },
  ]);
  expect(source.begun[0]!.gaveUp).toBe(true);
});

test("a scan may take longer than other queries", async () => {
  const { server, source } = await served({ queryMs: 1 });
  const answer = fetch(`${server.url}${checksum}`);
  await source.began(1);
  await new Promise((later) => setTimeout(later, 30));
  source.begun[0]!.done();
  expect((await answer).status).toBe(200);
});

test("a scan ends when its client leaves, and so does a client's wait", async () => {
  const { server, source } = await served();
  const [first, second] = [new AbortController(), new AbortController()];
  const ask = (signal?: AbortSignal) => fetch(`${server.url}${checksum}`, signal ? { signal } : {});
  const scanning = ask(first.signal);
  await source.began(1);
  const waiting = ask(second.signal);
  const last = ask();
  second.abort();
  await expect(waiting).rejects.toThrow();
  first.abort();
  await expect(scanning).rejects.toThrow();
  await source.began(2);
  expect(source.begun[0]!.gaveUp).toBe(true);
  source.begun[1]!.done();
  // where the second's wait had not ended yet, its scan is given up at once
  await expect.poll(() => source.begun.filter(({ gaveUp }) => !gaveUp).length).toBe(1);
  source.begun.at(-1)!.done();
  expect((await last).status).toBe(200);
});
