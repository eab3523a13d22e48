// node scripts/move-files.ts TABLE [ROOM]: moves files and renames what they export, as a table says, and corrects
// every import, path and name that refers to them. A line of the table is `old/path new/path`, or `OldName newName` for
// an identifier; with ROOM only what was in that room. Finished moves are skipped, so that an older branch can run it
// again.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path/posix";

const [table, room] = process.argv.slice(2);
if (table === undefined) throw new Error("usage: node scripts/move-files.ts TABLE [ROOM]");
process.chdir(join(import.meta.dirname, ".."));

const lines = readFileSync(table, "utf8").split("\n");
const pairs = lines
  .filter((line) => line !== "" && !line.startsWith("#"))
  .filter((line) => room === undefined || line.startsWith(`src/${room}/`))
  .map((line) => line.split(" ") as [string, string]);
const moves = new Map(pairs.filter(([old]) => old.includes("/")));
const names = new Map(pairs.filter(([old]) => !old.includes("/")));

const isText = (file: string) => /\.(?:[cm]?[jt]s|json|md|patch|yaml|toml)$/.test(file);
const tracked = () =>
  execFileSync("git", ["ls-files", "-z"], { encoding: "utf8" }).split("\0").filter(Boolean);

/** Where each file was before, by where it is now. */
const formerly = new Map<string, string>();
for (const [old, moved] of moves) {
  if (!existsSync(old)) continue;
  if (existsSync(moved)) throw new Error(`both ${old} and ${moved} are there`);
  mkdirSync(dirname(moved), { recursive: true });
  execFileSync("git", ["mv", old, moved]);
  formerly.set(moved, old);
}

/** A relative import as it has to be now that its file, or the one that it names, has moved. */
function specifierNow(specifier: string, file: string): string {
  const from = dirname(formerly.get(file) ?? file);
  const target = join(from, specifier);
  // dist/ has the folders of src/
  const inSource = target.replace(/^dist\//, "src/").replace(/\.js$/, ".ts");
  const movedSource = moves.get(target) ?? (inSource === target ? undefined : moves.get(inSource));
  const moved = movedSource === undefined ? target : asBuilt(movedSource, target);
  if (moved === target && !formerly.has(file)) return specifier;
  const path = relative(dirname(file), moved);
  return path.startsWith(".") ? path : `./${path}`;
}

function asBuilt(source: string, target: string): string {
  const built = target.startsWith("dist/") ? source.replace(/^src\//, "dist/") : source;
  return target.endsWith(".js") ? built.replace(/\.ts$/, ".js") : built;
}

const importPattern =
  /(\bfrom |\bimport |\bimport\(\s*|\bimport\.meta\.resolve\(|\bnew URL\(|\bvi\.mock\()"(\.[^"]*)"/g;
const pathPattern = /(?<![\w./-])(src|dist|test)\/[\w./-]+/g;
/** In documents, a file by its path below src/, or by its name where only its name has changed. */
const documentPattern = /(?<=`)(?:src\/)?[\w-]+(?:\/[\w-]+)*\.ts(?=`)/g;
const renamed = new Map(
  [...moves]
    .map(([old, moved]): [string, string] => [basename(old), basename(moved)])
    .filter(([old, moved]) => old !== moved),
);
/** A built file, by its path below dist/. */
const builtPattern = /(?<=")[\w-]+\/[\w./-]+\.js(?=")/g;
const namePattern =
  names.size === 0 ? null : new RegExp(`(?<![\\w$-])(?:${[...names.keys()].join("|")})(?![\\w$-])`, "g");

/** Any path from the project's root, in documents, patches and strings. */
function pathNow(path: string): string {
  const source = path.replace(/^dist\//, "src/").replace(/\.js$/, ".ts");
  const moved = moves.get(path) ?? moves.get(source);
  return moved === undefined ? path : asBuilt(moved, path);
}

function documentedNow(path: string): string {
  if (path.startsWith("src/")) return pathNow(path);
  if (path.includes("/")) return pathNow(`src/${path}`).slice("src/".length);
  return renamed.get(path) ?? path;
}

for (const file of tracked()) {
  if (!isText(file) || file === table || !existsSync(file) || file.startsWith("src/gen/")) continue;
  const before = readFileSync(file, "utf8");
  let text = before;
  if (/\.[cm]?[jt]s$/.test(file))
    text = text.replace(
      importPattern,
      (_, head: string, specifier: string) => `${head}"${specifierNow(specifier, file)}"`,
    );
  // a patch has the path after a/ and b/
  text = text.replace(/(?<=^(?:---|\+\+\+) [ab]\/)\S+/gm, pathNow).replace(pathPattern, pathNow);
  text = text.replace(builtPattern, (path) => pathNow(`dist/${path}`).slice("dist/".length));
  if (file.endsWith(".md")) text = text.replace(documentPattern, documentedNow);
  if (namePattern !== null && !file.endsWith(".json"))
    text = text.replace(namePattern, (name) => names.get(name)!);
  if (text !== before) writeFileSync(file, text);
}
