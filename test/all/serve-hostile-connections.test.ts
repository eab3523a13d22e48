import { readdir, readFile } from "node:fs/promises";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { HostileTarget, targetRun } from "../fixtures/served/hostile-target.ts";
import { rawGet } from "../fixtures/served/serve-raw-client.ts";

const descriptors = 1024;
const clients = 2000;
const mib = 2 ** 20;
const { instanceId, runId } = targetRun;
const rows = `/history/fills?instance=${instanceId}&run_id=${runId}`;

/** Connections that mean no good, as many as are open. */
class Crowd implements Disposable {
  readonly #sockets = new Set<net.Socket>();
  readonly #trickle: NodeJS.Timeout;

  constructor() {
    // a byte of a head now and then
    this.#trickle = setInterval(() => {
      for (const socket of this.#sockets) {
        if (socket.writable && socket.bytesWritten > 0 && !socket.isPaused()) socket.write("x");
      }
    }, 500);
  }

  async join(port: number, begin: (socket: net.Socket) => void): Promise<void> {
    const socket = net.connect(port, "127.0.0.1");
    socket.on("error", () => {});
    await new Promise<void>((settled) => {
      socket.once("connect", () => {
        this.#sockets.add(socket);
        begin(socket);
        settled();
      });
      socket.once("close", () => {
        this.#sockets.delete(socket);
        settled();
      });
    });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#trickle);
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Most memory that a process had, in MiB. */
async function peakMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

async function openFiles(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}

test("2,000 slow connections under 1,024 descriptors keep nobody out", async () => {
  await using target = await HostileTarget.open({
    before: ["bash", "-c", `ulimit -n ${descriptors}; exec "$@"`, "bash"],
    args: ["--idle-timeout", "2s"],
    // 12 MB of fills, more than the buffers of a connection take
    rows: 30_000,
    job: { tables: ["fills"], settings: { segmentBytes: 4 * mib, sliceRows: 100_000 } },
  });
  const { port, url } = target;
  const pid = target.running.child.pid!;
  const request = (path: string) => `GET /api/v1${path} HTTP/1.1\r\nhost: t\r\n\r\n`;
  const silent = (_socket: net.Socket) => {};
  const slow = (socket: net.Socket) => void socket.write("GET /api/v1/health HTTP/1.1\r\nx: ");
  const unread = (socket: net.Socket) => {
    socket.pause();
    socket.write(request(rows));
  };
  const bodied = (socket: net.Socket) =>
    void socket.write("POST /example.history.v1.HistoryService/ListRuns HTTP/1.1\r\ncontent-length: 9\r\n");
  {
    using crowd = new Crowd();
    const kinds = [silent, slow, unread, bodied];
    for (let joined = 0; joined < clients; joined += 50) {
      const batch = Array.from({ length: 50 }, (_, i) => crowd.join(port, kinds[i % kinds.length]!));
      await Promise.all(batch);
    }
    // whoever asks is answered, however many others are there
    for (let i = 0; i < 10; i++) {
      const { status } = await rawGet(`${url}${["/health", "/doctor", "/history/instances"][i % 3]}`);
      expect(status).toBe(200);
    }
    const metrics = String((await rawGet(`${new URL(url).origin}/metrics`)).body);
    const refused = Number(/^runvault_connections_refused_total (\d+)$/m.exec(metrics)?.[1]);
    expect(refused).toBeGreaterThan(0);
    expect(await openFiles(pid)).toBeLessThan(descriptors);
    // those that take no rows hold the queries that may run at a time, until they are dropped
    for (;;) {
      const { status, isWhole, head } = await rawGet(`${url}${rows}&limit=5`);
      if (status === 200) {
        expect(isWhole).toBe(true);
        break;
      }
      expect([status, /retry-after: 1/.test(head)]).toEqual([429, true]);
      await sleep(200);
    }
    expect(await peakMib(pid)).toBeLessThan(900);
  }
  // and once they are gone, all is as it was
  const whole = await rawGet(`${url}${rows}`);
  expect([whole.status, whole.isWhole]).toEqual([200, true]);
  expect((await fetch(`${url}${rows}&symbol=A&limit=7`)).status).toBe(200);
  expect(await target.trouble()).toBe("");
  const { status, stderr } = await target.stop();
  expect(status).toBe(0);
  expect(stderr).toContain(`all ${descriptors / 2} connections are in use`);
  expect(stderr).not.toMatch(/EMFILE|internal|storage_/);
});
