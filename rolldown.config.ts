import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Plugin } from "rolldown";

/** Packages that commands load when they start: inside the bundle they open few files. */
const bundled = [
  ...[
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "@connectrpc/connect-node",
    "@duckdb/node-api",
    "commander",
  ],
  ...["p-queue", "p-retry", "undici", "zod"],
];

const isOf = (name: string, id: string) => id === name || id.startsWith(`${name}/`);
const isPackage = (id: string) => /^[^./]/.test(id);

const common = {
  platform: "node",
  // for Node 22, which has no `using`
  transform: { target: "es2024" },
} as const;

export default defineConfig([
  {
    ...common,
    input: {
      "cli/main": "./src/cli/main.ts",
      "cli/apart/query-apart": "./src/cli/apart/query-apart.ts",
    },
    external: (id, importer) =>
      isPackage(id) &&
      !isOf("@oxc-project/runtime", id) &&
      // what packages inside the bundle import comes with them, but for DuckDB itself, which is no JavaScript
      (importer?.includes("/node_modules/")
        ? isOf("@duckdb/node-bindings", id)
        : !bundled.some((name) => isOf(name, id))),
    plugins: [withoutLanguages(), licences()],
    output: { dir: "dist", cleanDir: true, chunkFileNames: "chunks/[name]-[hash].js", sourcemap: true },
  },
  // whoever imports the library shares its packages
  {
    ...common,
    input: Object.fromEntries(
      ["archive", "extract", "query", "serve", "source"].map((name) => [
        `library/${name}`,
        `./src/library/${name}.ts`,
      ]),
    ),
    external: (id) => isPackage(id) && !isOf("@oxc-project/runtime", id),
    output: { dir: "dist", chunkFileNames: "library/chunks/[name]-[hash].js", sourcemap: true },
  },
]);

/** Leaves zod's translations out: sixty modules, which would take longer to load than the rest of it. */
function withoutLanguages(): Plugin {
  return {
    name: "without-languages",
    load: (id) => (/\/zod\/v4\/locales\/index\.js$/.test(id) ? "" : null),
  };
}

/** Writes dist/licences.txt, with the licence of each package inside the bundle. */
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle(_, bundle) {
      const modules = new Map<string, string[]>();
      for (const chunk of Object.values(bundle))
        for (const id of chunk.type === "chunk" ? chunk.moduleIds : []) {
          const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0];
          if (folder !== undefined) modules.set(folder, [...(modules.get(folder) ?? []), id]);
        }
      const texts = [...modules].sort().map(([folder, ids]) => licenceOf(folder, ids));
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join(`\n${"-".repeat(80)}\n`) });
    },
  };
}

function licenceOf(folder: string, modules: readonly string[]): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const text = file === undefined ? noticesIn(modules) : readFileSync(join(folder, file), "utf8");
  if (text === "") throw new Error(`${folder} says nothing of its licence but ${license}`);
  return `${name} ${version}: ${license}\n\n${text.trimEnd()}\n`;
}

/** The notices at the head of these modules, each once. */
function noticesIn(modules: readonly string[]): string {
  const notices = modules.flatMap((id) => /^(?:\/\/.*\n)+/gm.exec(readFileSync(id, "utf8")) ?? []);
  return [...new Set(notices.filter((notice) => notice.includes("Copyright")))].join("\n");
}
