// Prints the packages of package-lock.json with version and licence: `npm run licences`. With --check it prints only those
// whose licence is not listed below and fails where there are any: `npm run check:licences [-- FILE]`.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Licences allowed in what we ship, as packages write them: read a licence before adding it. */
const shipped: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "(Apache-2.0 AND BSD-3-Clause)",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "ISC",
  "MIT",
  "MIT-0",
  "Unlicense",
]);

/** Licences also allowed in our tools. */
const ofTools: ReadonlySet<string> = new Set(["MIT OR Apache-2.0", "MPL-2.0"]);

interface Entry {
  readonly name?: string;
  readonly version?: string;
  readonly license?: unknown;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly os?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface Package {
  readonly name: string;
  readonly version: string;
  /** Undefined if the package names none. */
  readonly licence: string | undefined;
  readonly isTool: boolean;
}

const args = process.argv.slice(2);
const isCheck = args.includes("--check");
const file =
  args.find((arg) => !arg.startsWith("--")) ?? join(import.meta.dirname, "..", "package-lock.json");
const { packages: entries } = JSON.parse(readFileSync(file, "utf8")) as { packages?: Record<string, Entry> };
if (entries === undefined) throw new Error(`${file}: no list of packages`);

const found = Object.entries(entries)
  // the project itself, and folders that are linked to
  .filter(([path, { link }]) => path !== "" && link !== true)
  .map(([path, entry]) => packageOf(path, entry));
const wrong = found.filter(({ licence, isTool }) => {
  return licence === undefined || !(shipped.has(licence) || (isTool && ofTools.has(licence)));
});
if (!isCheck) console.log(table(found));
else if (wrong.length > 0) {
  console.error(`${table(wrong)}
The packages above have a licence that scripts/licences.ts does not list, or none. Read it, and add it to the
list if it may be used so; otherwise do without the package.`);
  process.exitCode = 1;
}

function packageOf(path: string, entry: Entry): Package {
  const name = entry.name ?? nameOf(path);
  const { version = "", dev: isTool = false } = entry;
  return { name, version, licence: licenceOf(path, entry), isTool };
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** As the installed package has it, else as it was when it was locked. */
function licenceOf(path: string, entry: Entry): string | undefined {
  const installed = join(dirname(file), path, "package.json");
  const { license } = existsSync(installed) ? (JSON.parse(readFileSync(installed, "utf8")) as Entry) : entry;
  if (typeof license === "string") return license;
  return license === undefined && !existsSync(installed) ? licenceOfWhole(path, entry) : undefined;
}

/**
 * The licence of the package that a package for another machine is a part of: where one is not installed, the lock file
 * may not have its licence.
 */
function licenceOfWhole(path: string, { version, os }: Entry): string | undefined {
  if (os === undefined || version === undefined) return undefined;
  const wholes = Object.entries(entries ?? {}).filter(([, whole]) => {
    return whole.version === version && whole.optionalDependencies?.[nameOf(path)] === version;
  });
  const [whole] = wholes;
  return whole === undefined ? undefined : licenceOf(...whole);
}

function table(packages: readonly Package[]): string {
  const width = (texts: readonly string[]) => Math.max(0, ...texts.map(({ length }) => length));
  const names = width(packages.map(({ name }) => name));
  const versions = width(packages.map(({ version }) => version));
  return packages
    .map(({ name, version, licence = "none", isTool }) => {
      return `${name.padEnd(names)}  ${version.padEnd(versions)}  ${licence}${isTool ? "  (development)" : ""}`;
    })
    .sort()
    .join("\n");
}
