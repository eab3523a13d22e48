import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Row } from "../src/model/line.ts";
import { type TableName, tableNamed } from "../src/model/table.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");

/** A row of a table as `rpc-client.py` prints it. */
export interface PythonRow {
  readonly table: TableName;
  readonly fields: Record<string, string>;
}

/**
 * Pages whole tables of a run with the client that buf makes in Python from the project's proto files, with the plug-ins
 * that lie beside python3. The modules are made in `folder`.
 */
export async function pythonRows(
  folder: string,
  server: { readonly url: string },
  { instanceId, runId }: { readonly instanceId: string; readonly runId: string },
  pageSize: number,
  tables: readonly TableName[],
): Promise<PythonRow[]> {
  const modules = await generatedModules(folder);
  const args = [
    join(root, "test", "rpc-client.py"),
    modules,
    server.url,
    instanceId,
    runId,
    String(pageSize),
  ];
  const { stdout } = await run("python3", [...args, ...tables], { maxBuffer: 64 * 1024 * 1024 });
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as PythonRow);
}

async function generatedModules(folder: string): Promise<string> {
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

/** The fields of a row of REST's as the Python client shows them. */
export function asPythonShows(table: TableName, line: string): Record<string, string> {
  const row = JSON.parse(line) as Row;
  const fields = tableNamed(table).columns.map(({ name, kind }) => {
    if (kind !== "double") return [name, String(row[name])];
    const bits = Buffer.alloc(8);
    bits.writeDoubleBE(Number(row[name]));
    return [name, bits.toString("hex")];
  });
  return Object.fromEntries(fields);
}
