// Compiles wasm/normalise-rows.ts, which is AssemblyScript, into a module of src/gen. Run by `npm run generate`.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import asc from "assemblyscript/asc";

const root = join(import.meta.dirname, "..");
const source = "wasm/normalise-rows.ts";
/** Below the checkout's folder. */
const target = join("src", "gen", "wasm", "normalise-rows.ts");

const flags = [
  ...["--outFile", "kernel.wasm", "--runtime", "stub", "--enable", "simd,bulk-memory", "--noAssert"],
  ...[
    "--optimizeLevel",
    "3",
    "--shrinkLevel",
    "0",
    "--converge",
    "--noColors",
    "--uncheckedBehavior",
    "always",
  ],
];

/** Writes the compiled kernel into the folder. Throws what the compiler says against the source. */
export async function generateKernel(folder: string): Promise<void> {
  let binary: Uint8Array | undefined;
  const { error, stderr } = await asc.main([source, ...flags], {
    readFile: (name) => readFile(join(root, name), "utf8").catch(() => null),
    writeFile: (_name, content) => {
      if (typeof content !== "string") binary = content;
    },
    listFiles: () => [],
  });
  if (error !== null || binary === undefined) {
    throw new Error(`${source} does not compile: ${stderr.toString()}`, { cause: error });
  }
  const lines =
    Buffer.from(binary)
      .toString("base64")
      .match(/.{1,100}/g) ?? [];
  const text = [
    `// Compiled from ${source} by npm run generate; ${binary.byteLength} bytes. Do not edit.`,
    "export const normaliseRowsModule =",
    `${lines.map((line) => `  "${line}"`).join(" +\n")};`,
    "",
  ].join("\n");
  const file = join(folder, target);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

if (import.meta.main) await generateKernel(root);
