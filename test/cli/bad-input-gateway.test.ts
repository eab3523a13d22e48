import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RequestLogEntry } from "../../src/serve/monitoring/request-log.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { expectRefusal } from "../fixtures/command/refusal.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const token = "s3cret-t0ken-of-the-gateway";
const named = "alpha/2022-01-01";

let folder: string;
let served: Served;
let guarded: Served;
const asked: RequestLogEntry[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-bad-gateway-"));
  const source = new ArraySource(worldRun, smallWorld());
  const where = { source, host: "127.0.0.1", port: 0 };
  served = await serve({ ...where, onRequest: (entry) => asked.push(entry) });
  guarded = await serve({ ...where, token });
});
afterAll(async () => {
  await Promise.all([served.close(), guarded.close()]);
  await rm(folder, { recursive: true, force: true });
});

/** Arguments that archive what is named from an address, without waiting for retries. */
function archive(url: string, names: readonly string[] = [named], ...more: string[]): string[] {
  return [
    "archive",
    ...names,
    "--gateway",
    url,
    "--archive",
    join(folder, "archive"),
    "--retries",
    "0",
    ...more,
  ];
}

/** Runs the action while the server listens; gives it the server's address. */
async function whileListening(server: Server, action: (url: string) => Promise<unknown>): Promise<void> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  try {
    await action(`http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`);
  } finally {
    await new Promise((done) => server.close(done));
  }
}

describe("an address where no gateway answers", () => {
  it("exits with 3 and says that nothing listens", async () => {
    let url = "";
    // a port that was free a moment ago
    await whileListening(createServer(), async (found) => {
      url = found;
    });
    await expectRefusal(archive(url), {
      status: 3,
      code: "unreachable",
      says: ["nothing is listening there", url, "Check --gateway or RUNVAULT_GATEWAY"],
    });
  });

  it("exits with 3 when a web server answers with HTML", async () => {
    const web = createHttpServer((_, response) => {
      response.setHeader("Content-Type", "text/html");
      response.end("<!DOCTYPE html><html><body>It works!</body></html>");
    });
    await whileListening(web, async (url) => {
      const refusal = { status: 3, code: "not_a_gateway", says: [url] } as const;
      const [text] = await expectRefusal(archive(url), refusal);
      expect(text!.stderr).not.toContain("<html>");
    });
  });

  it("exits with 9 when a web server has no such page", async () => {
    const web = createHttpServer((_, response) => {
      response.statusCode = 404;
      response.end("<html>not found</html>");
    });
    await whileListening(web, async (url) => {
      await expectRefusal(archive(url), {
        status: 9,
        code: "route_not_found",
        says: [url, "check --gateway or RUNVAULT_GATEWAY"],
      });
    });
  });

  it("exits with 3 when something answers that is no HTTP", async () => {
    const babbler = createServer((socket) => {
      socket.resume();
      socket.on("error", () => {
        // the client hangs up on nonsense
      });
      socket.end("220 mail.example.com ESMTP\r\nnonsense\r\n");
    });
    await whileListening(babbler, async (url) => {
      await expectRefusal(archive(url), {
        status: 3,
        code: "not_a_gateway",
        says: [url, "Check the port in --gateway"],
      });
    });
  });
});

describe("names that are wrong", () => {
  it("an unknown run exits with 9 and names the latest there are", async () => {
    await expectRefusal(archive(served.url, ["alpha/2022-01-09"]), {
      status: 9,
      code: "run_not_found",
      says: ["2022-01-09", "alpha", "2022-01-01"],
    });
  });

  it("an unknown instance exits with 9, named or with --finished", async () => {
    const says = ["omega", "runvault runs"];
    await expectRefusal(archive(served.url, ["omega"], "--finished"), {
      status: 9,
      code: "instance_not_found",
      says,
    });
    const { status, stderr } = await runInside(archive(served.url, ["omega/2022-01-01"]));
    expect(status).toBe(9);
    expect(stderr).toMatch(/runvault: (instance|run)_not_found: .*\n.*omega.*hint: /s);
  });

  it("one wrong run of several does not keep the others from being archived", async () => {
    const { status, stdout, stderr } = await runInside(
      archive(served.url, ["alpha/nope", named], "--tables", "fills"),
    );
    expect(status).toBe(9);
    expect(stderr).toContain("run_not_found");
    expect(stdout).toMatch(/alpha\/2022-01-01 +COMPLETE/);
  });

  it.each([
    ["current", ["alpha/current"], "`current` is not a run id"],
    ["empty", ["alpha/"], "it does not name a run"],
  ])("a run id that is %s exits with 2 before anything is asked", async (_, names, says) => {
    asked.length = 0;
    await expectRefusal(archive(served.url, names), {
      status: 2,
      code: "invalid_argument",
      says: [says, "exact id"],
    });
    expect(asked).toEqual([]);
  });

  it("an unknown table, flag or command exits with 2 and names the nearest", async () => {
    asked.length = 0;
    await expectRefusal(archive(served.url, [named], "--tables", "fils"), {
      status: 2,
      code: "table_unknown",
      says: ["did you mean fills?"],
    });
    await expectRefusal(archive(served.url, [named], "--finishd"), {
      status: 2,
      code: "invalid_argument",
      says: ["--finishd", "Did you mean --finished?"],
    });
    await expectRefusal(["archve", named], {
      status: 2,
      code: "invalid_argument",
      says: ["archve", "archive?"],
    });
    expect(asked).toEqual([]);
  });
});

describe("a token", () => {
  it("that is wrong exits with 9 and stands nowhere in what is said", async () => {
    const wrong = "wr0ng-t0ken-of-somebody";
    const file = join(folder, "wrong-token");
    await writeFile(file, `${wrong}\n`);
    const refusal = {
      status: 9,
      code: "unauthenticated",
      says: ["401", "The token was sent, as Authorization: Bearer TOKEN"],
    } as const;
    const args = archive(guarded.url, [named], "--token-file", file, "--verbose");
    for (const { stdout, stderr } of await expectRefusal(args, refusal)) {
      expect(stdout + stderr).not.toContain(wrong);
    }
    for (const { stdout, stderr } of await expectRefusal(archive(guarded.url), refusal, (given) =>
      runInside([...given, "--debug"], { env: { RUNVAULT_TOKEN: wrong } }).then((finished) => ({
        ...finished,
        // --debug shows stacks on purpose
        stderr: finished.stderr.replace(/^\s+at .*$/gm, ""),
      })),
    )) {
      expect(stdout + stderr).not.toContain(wrong);
    }
  });

  it("that is right stands nowhere in the archive, nor in what is said", async () => {
    const file = join(folder, "token");
    await writeFile(file, `${token}\n`);
    const dir = join(folder, "guarded");
    const args = ["archive", named, "--gateway", guarded.url, "--archive", dir, "--tables", "fills,bars"];
    const finished = await runInside([...args, "--token-file", file, "--verbose", "--debug"]);
    expect(finished.status).toBe(0);
    expect(finished.stdout + finished.stderr).not.toContain(token);
    let files = 0;
    for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      files += 1;
      const bytes = await readFile(join(entry.parentPath, entry.name));
      expect(bytes.includes(token), entry.name).toBe(false);
    }
    expect(files).toBeGreaterThan(5);
  });
});

describe("a proof that is too weak", () => {
  it("exits with 4 for --require hashed from a gateway without row checksums, and with 0 from one that has them", async () => {
    const source = new ArraySource(worldRun, smallWorld(5));
    const server = await serve({ source, host: "127.0.0.1", port: 0 });
    try {
      const dir = join(folder, "hashed");
      const args = ["archive", named, "--gateway", server.url, "--archive", dir, "--tables", "fills"];
      const { status, stdout, stderr } = await runInside([...args, "--require", "hashed"]);
      expect([status, stdout + stderr]).toEqual([4, expect.stringMatching(/fills +UNVERIFIED/)]);
      expect(stdout + stderr).toContain("the gateway gives no row checksum");
      source.manners = { hashes: "named" };
      expect((await runInside([...args, "--require", "hashed"])).status).toBe(0);
    } finally {
      await server.close();
    }
  });

  it("exits with 4 for --require counted from a literal gateway", async () => {
    const source = new ArraySource(worldRun, smallWorld(5));
    const literal = await serve({ source, host: "127.0.0.1", port: 0, literal: true });
    try {
      const dir = join(folder, "literal");
      const args = ["archive", named, "--gateway", literal.url, "--archive", dir, "--tables", "fills"];
      expect((await runInside(args)).status).toBe(0);
      const { status, stdout } = await runInside([...args, "--require", "counted"]);
      expect(status).toBe(4);
      expect(stdout).toMatch(/fills +UNVERIFIED .*its proof \(exhausted\) is weaker than required/);
      expect(stdout).toContain("hint for fills: Leave out --require");
      const again = await runInside([...args, "--require", "counted", "--json"]);
      expect(
        JSON.parse(again.stdout).tables?.fills ?? JSON.parse(again.stdout).runs[0].tables.fills,
      ).toMatchObject({
        reason: "its proof (exhausted) is weaker than required",
        hint: expect.stringContaining("--require"),
      });
    } finally {
      await literal.close();
    }
  });
});
