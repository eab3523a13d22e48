import { defineConfig } from "rolldown";

/** What is started or imported by its path in dist/. */
const entries = [
  ...["cli/main", "cli/apart/query-apart"],
  ...["archive", "extract", "query", "serve", "source"].map((name) => `library/${name}`),
];

/** The command and the library, bundled so that a command opens few files when it starts. */
export default defineConfig({
  input: Object.fromEntries(entries.map((name) => [name, `./src/${name}.ts`])),
  platform: "node",
  // for Node 22, which has no `using`
  transform: { target: "es2024" },
  // packages stay as they were installed; rolldown has the helpers of what Node 22 lacks itself
  external: (id) => /^[^./]/.test(id) && !id.startsWith("@oxc-project/runtime"),
  output: { dir: "dist", cleanDir: true, chunkFileNames: "chunks/[name]-[hash].js", sourcemap: true },
});
