// Fails when src/gen is not what proto/ and wasm/ generate: `npm run check:generated`. It writes outside the checkout only.
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { generateKernel } from "./generate-kernel.ts";

const root = join(import.meta.dirname, "..");

/** Every file below a folder with its content, by path with `/`; empty when the folder does not exist. */
async function filesBelow(folder: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  });
  for (const entry of entries.filter((candidate) => candidate.isFile())) {
    const path = join(entry.parentPath, entry.name);
    files.set(
      path
        .slice(folder.length + 1)
        .split(sep)
        .join("/"),
      await readFile(path, "utf8"),
    );
  }
  return files;
}

/** Differences between the committed and the fresh files, one line per file. */
function differences(committed: Map<string, string>, fresh: Map<string, string>): string[] {
  return [...new Set([...committed.keys(), ...fresh.keys()])].sort().flatMap((file) => {
    if (!committed.has(file)) return [`missing  src/gen/${file}`];
    if (!fresh.has(file)) return [`left over  src/gen/${file}`];
    return committed.get(file) === fresh.get(file) ? [] : [`stale  src/gen/${file}`];
  });
}

const folder = await mkdtemp(join(tmpdir(), "runvault-generated-"));
try {
  // -o puts the template's `out: src/gen` below the temporary folder
  const buf = join(root, "node_modules", ".bin", "buf");
  const path = `${join(root, "node_modules", ".bin")}:${process.env.PATH ?? ""}`;
  const { status, error, stderr } = spawnSync(buf, ["generate", "-o", folder], {
    cwd: root,
    env: { ...process.env, PATH: path },
    encoding: "utf8",
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`buf generate ended with status ${status}: ${stderr}`);

  const generated = join(folder, "src", "gen");
  if ((await filesBelow(generated)).size === 0) throw new Error("buf generate wrote no files");
  await generateKernel(folder);
  const fresh = await filesBelow(generated);
  const lines = differences(await filesBelow(join(root, "src", "gen")), fresh);
  if (lines.length > 0) {
    console.error(
      `src/gen is not what proto/ and wasm/ generate; run npm run generate.\n${lines.join("\n")}`,
    );
    process.exitCode = 1;
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
