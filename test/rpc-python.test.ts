import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import type { Row } from "../src/model/line.ts";
import { type TableName, tableNamed, tables } from "../src/model/table.ts";
import { serve } from "../src/serve/server.ts";
import { openSimulator } from "../src/simulator/simulator.ts";
import { requires } from "./requirement.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const folder = await mkdtemp(join(tmpdir(), "runvault-python-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Python modules made by buf from the project's proto files, with the plug-ins that lie beside python3. */
async function generatedModules(): Promise<string> {
  const { stdout } = await run("python3", ["-c", 'import sysconfig; print(sysconfig.get_path("scripts"))']);
  const out = join(folder, "modules");
  const plugins = ["protoc-gen-py", "protoc-gen-connectrpc"].map((name) => ({
    local: join(stdout.trim(), name),
    out,
  }));
  const template = join(folder, "buf.gen.yaml");
  await writeFile(template, JSON.stringify({ version: "v2", plugins }));
  await run(join(root, "node_modules", ".bin", "buf"), ["generate", "--template", template, "proto"], {
    cwd: root,
  });
  return out;
}

/** A row of REST's as the Python client shows a row. */
function shown(table: TableName, line: string): Record<string, string> {
  const row = JSON.parse(line) as Row;
  const fields = tableNamed(table).columns.map(({ name, kind }) => {
    if (kind !== "double") return [name, String(row[name])];
    const bits = Buffer.alloc(8);
    bits.writeDoubleBE(Number(row[name]));
    return [name, bits.toString("hex")];
  });
  return Object.fromEntries(fields);
}

test.skipIf(!requires("rpc-client"))(
  "a Python client made from the proto files pages every table, and has the rows that REST has",
  async () => {
    const modules = await generatedModules();
    await using world = await openSimulator({
      seed: "python",
      runs: 1,
      rows: 1500,
      cacheDir: join(folder, "worlds"),
    });
    const [instance] = await world.instances();
    const { instanceId } = instance!;
    const runId = instance!.currentRunId;
    const server = await serve({ source: world, control: world, host: "127.0.0.1", port: 0 });
    try {
      const names = tables.map(({ name }) => name);
      const args = [
        join(root, "test", "rpc-client.py"),
        modules,
        server.url,
        instanceId,
        runId,
        "97",
        ...names,
      ];
      const { stdout } = await run("python3", args, { maxBuffer: 64 * 1024 * 1024 });
      const seen = stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { table: TableName; fields: Record<string, string> });
      for (const { name, path } of tables) {
        const response = await fetch(`${server.url}${path}?instance=${instanceId}&run_id=${runId}`);
        const lines = (await response.text()).trimEnd().split("\n");
        const rows = seen.filter(({ table }) => table === name).map(({ fields }) => fields);
        expect([name, lines.length > 1]).toEqual([name, true]);
        expect(rows).toEqual(lines.map((line) => shown(name, line)));
      }
    } finally {
      await server.close();
    }
  },
);
