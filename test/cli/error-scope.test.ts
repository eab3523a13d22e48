import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { type ErrorCode, errorCodes, RunvaultError } from "../../src/model/error.ts";
import type { HistorySource, RunRef } from "../../src/model/source.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { archiveWorld, smallWorld } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const first: RunRef = { instanceId: "alpha", runId: "1" };
const second: RunRef = { instanceId: "beta", runId: "1" };
const third: RunRef = { instanceId: "gamma", runId: "1" };
const all = [first, second, third];
const nameOf = ({ instanceId, runId }: RunRef) => `${instanceId}/${runId}`;

/** Codes that a gateway's answer can have, of each scope that is more than a table. */
const fromGateways = (["run_not_found", "refused", "instance_not_found", "permission_denied"] as const).map(
  (code) => [code, errorCodes[code].scope] as const,
);

let folder: string;
let server: Served;
/** What the first instance answers with, whatever is asked of it. */
let answered: ErrorCode | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-scope-"));
  server = await serve({ source: severalRuns(), host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

/** A gateway with three instances, one run each, of which the first may refuse. */
function severalRuns(): HistorySource {
  const sources = new Map(all.map((run) => [run.instanceId, new ArraySource(run, smallWorld(5, run))]));
  const of = (instanceId: string) => {
    if (instanceId === first.instanceId && answered !== undefined) throw new RunvaultError(answered, "no");
    return sources.get(instanceId)!;
  };
  return {
    label: "three instances",
    instances: async () => all.map(({ instanceId, runId }) => ({ instanceId, runIds: [runId] })),
    runs: async (instanceId) => of(instanceId).runs(instanceId),
    facts: async (run, bounds) => of(run.instanceId).facts(run, bounds),
    document: async (run, kind) => of(run.instanceId).document(run, kind),
    rows: (request) => of(request.instanceId).rows(request),
    [Symbol.asyncDispose]: async () => {},
  };
}

async function archived(name: string, code: ErrorCode) {
  answered = code;
  const where = ["--gateway", server.url, "--archive", join(folder, name), "--retries", "0"];
  const what = ["archive", ...all.map(nameOf), "--tables", "fills", "--json"];
  const { stdout } = await runInside([...what, ...where]);
  const { runs, notTried } = JSON.parse(stdout) as {
    runs: { instanceId: string; state: string | null; error?: { code: string } }[];
    notTried: RunRef[];
  };
  return { runs: runs.map(({ state, error }) => error?.code ?? state), notTried };
}

describe("archive goes on to other runs after an error that concerns", () => {
  // an invalid_argument over the wire is a refusal
  test.each(fromGateways)("%s, which is of a scope of %s", async (code, scope) => {
    expect(["run", "instance"]).toContain(scope);
    const sent = code === "refused" ? "invalid_argument" : code;
    expect(await archived(code, sent)).toEqual({ runs: [code, "COMPLETE", "COMPLETE"], notTried: [] });
  });
});

test("archive tries no other run after an error that concerns the whole job", async () => {
  expect(errorCodes.unauthenticated.scope).toBe("job");
  expect(await archived("job", "unauthenticated")).toEqual({
    runs: ["unauthenticated"],
    notTried: [second, third],
  });
});

describe("verify --against", () => {
  let dir: string;
  beforeAll(async () => {
    dir = join(folder, "to-verify");
    for (const run of all)
      await archiveWorld(dir, new ArraySource(run, smallWorld(5, run)), { tables: ["fills"] });
    expect((await (await openArchive(dir)).manifests()).length).toBe(all.length);
  });

  async function comparedWith(code: ErrorCode): Promise<(string | undefined)[]> {
    answered = code;
    const asked = ["verify", "--archive", dir, "--against", server.url, "--retries", "0", "--json"];
    const { runs } = JSON.parse((await runInside(asked)).stdout) as {
      runs: { checks: { check: string; detail: string }[] }[];
    };
    return runs.map(
      ({ checks }) =>
        checks.find(({ check, detail }) => check === "facts" && /not compared/.test(detail))?.detail,
    );
  }

  test.each(fromGateways)("asks about other runs after %s, which is of a scope of %s", async (code) => {
    const [about, ...others] = await comparedWith(code === "refused" ? "invalid_argument" : code);
    expect(about).toContain(code);
    expect(others).toEqual([undefined, undefined]);
  });

  test("asks about no other run after an error that concerns the whole job", async () => {
    const before = "not compared: the gateway could not be reached before";
    expect(await comparedWith("unauthenticated")).toEqual([
      expect.stringContaining("unauthenticated"),
      before,
      before,
    ]);
  });
});
