import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { startInside } from "../fixtures/command/command-inside.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { hostile, obeyed } from "../fixtures/source/hostile-texts.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-hostile-requests-"));
  await archiveWorld(join(folder, "archive"), new ArraySource(worldRun, smallWorld(3)), {
    tables: ["fills"],
  });
});
afterAll(() => rm(folder, { recursive: true }));

/** Asks for paths that no HTTP client would send: with the bytes of C1 controls as they are. */
async function ask(url: string): Promise<void> {
  const { port } = new URL(url);
  const texts = [encodeURIComponent(hostile), "a\u009b31m\u0085b"];
  for (const text of texts) {
    for (const target of [
      `history/fills?instance=${text}`,
      `history/fills?${text}=1`,
      `instances/${text}`,
      text,
    ]) {
      const socket = net.connect(Number(port), "127.0.0.1");
      const lines = [
        `GET /api/v1/${target} HTTP/1.1`,
        "host: localhost",
        `x-name: ${text}`,
        "connection: close",
      ];
      socket.resume().write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
      await once(socket, "close");
    }
  }
}

const small = ["simulate", "--rows", "500", "--runs", "1"];
const archived = ["serve", "--verbose"];

test.each([
  ["an access log on standard output", [...archived, "--access-log", "-"], null],
  ["an access log in a file", [...archived, "--access-log"], "access.ndjson"],
  ["a request log", [...small, "--request-log"], "requests.ndjson"],
])("what clients ask for does nothing in %s", async (_, args, file) => {
  const place = args[0] === "serve" ? ["--archive", join(folder, "archive")] : ["--cache", folder];
  const server = startInside([...args, ...(file === null ? [] : [join(folder, file)]), ...place]);
  await ask(await server.firstLine());
  server.signal("SIGTERM");
  const { stdout, stderr } = await server.finished;
  const log =
    file === null ? stdout.slice(stdout.indexOf("\n") + 1) : await readFile(join(folder, file), "utf8");
  expect([obeyed(stdout), obeyed(stderr), obeyed(log)]).toEqual([[], [], []]);
  const entries = log.trimEnd().split("\n");
  expect(entries).toHaveLength(8);
  for (const entry of entries) JSON.parse(entry);
  expect(log).toContain("COMPLETE\\nalpha-1");
});
