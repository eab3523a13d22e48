import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, posix } from "node:path";
import { describe, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";

const read = (file: string) => readFileSync(inProject(file), "utf8");
const documents = globSync("docs/**/*.md", { cwd: inProject(".") });
const decisions = documents.filter((file) => file.startsWith("docs/decisions/"));
const sources = globSync("src/**/*.ts", { cwd: inProject(".") });
const names = new Set(sources.map((file) => basename(file)));

/** Files that a document names in backticks: from the project's root, below src/, or by their names alone. */
function filesIn(text: string): string[] {
  return [...text.matchAll(/`([\w./-]+\.ts)`/g)].map(([, file]) => file!);
}

function isThere(file: string): boolean {
  if (!file.includes("/"))
    return names.has(file) || globSync(`{test,scripts,bench}/**/${file}`, { cwd: inProject(".") }).length > 0;
  return existsSync(inProject(file)) || existsSync(inProject("src", file));
}

describe("documents name files that there are", () => {
  const namers = ["src/README.md", "docs/ARCHITECTURE.md", "docs/proof.md", "CONTRIBUTING.md", ...decisions];

  test.each(namers)("%s", (document) => {
    expect(filesIn(read(document)).filter((file) => !isThere(file))).toEqual([]);
  });

  test("each folder that the map names is one", () => {
    const folders = [...read("src/README.md").matchAll(/`(src\/[\w/]+\/)`/g)].map(([, folder]) => folder!);
    expect(folders.length).toBeGreaterThan(20);
    expect(folders.filter((folder) => !existsSync(inProject(folder)))).toEqual([]);
  });

  test("every document is in the index, and the other way around", () => {
    const indexed = [...read("docs/README.md").matchAll(/\]\(((?:decisions\/)?[\w-]+\.md)\)/g)].map(
      ([, file]) => file!,
    );
    const there = documents.map((file) => file.slice("docs/".length)).filter((file) => file !== "README.md");
    expect(indexed.sort()).toEqual(there.sort());
  });
});

/** The addresses that GitHub gives the headings of a document. */
function anchors(file: string): Set<string> {
  const headings = read(file)
    .replace(/```.*?```/gs, "")
    .matchAll(/^#+ (.*)$/gm);
  return new Set(
    [...headings].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

function isLinked(file: string, anchor: string | undefined): boolean {
  if (!existsSync(inProject(file))) return false;
  return anchor === undefined || !file.endsWith(".md") || anchors(file).has(anchor);
}

// a renamed heading or document would leave links that lead nowhere
describe("links lead to documents and headings that there are", () => {
  test.each([
    ...documents,
    ...globSync("{*,bench/*,src/*,test/*,notebooks/*,pipelines/*}.md", { cwd: inProject(".") }),
  ])("%s", (document) => {
    const links = read(document)
      .replace(/```.*?```/gs, "")
      .matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g);
    const lost = [...links].filter(
      ([, file, anchor]) =>
        !isLinked(file === "" ? document : posix.join(posix.dirname(document), file!), anchor),
    );
    expect(lost.map(([link]) => link)).toEqual([]);
  });

  test("sources, tests and scripts name documents that there are", () => {
    const lost = globSync("{src,test,scripts,bench,proto}/**/*.{ts,sql,proto,patch}", {
      cwd: inProject("."),
    }).flatMap((source) =>
      [...read(source).matchAll(/\b(?:docs|bench|test)\/[\w/.-]+\.md(?:#([\w-]+))?/g)]
        .filter(([link, anchor]) => !isLinked(link.split("#")[0]!, anchor))
        .map(([link]) => `${source}: ${link}`),
    );
    expect(lost).toEqual([]);
  });
});

test("the walk names functions that are in the files of their steps", () => {
  const walk = read("src/README.md");
  // "`src/file.ts`, `name`" or "`name` (`src/file.ts`)"
  const pairs = [
    ...[...walk.matchAll(/`(src\/[^`]+)`,\s+`(\w+)`/g)].map(([, file, name]) => [file!, name!]),
    ...[...walk.matchAll(/`(\w+)`\s+(?:in\s+|\()`(src\/[^`]+)`/g)].map(([, name, file]) => [file!, name!]),
  ];
  expect(pairs.length).toBeGreaterThan(35);
  const missing = pairs.filter(
    ([file, name]) =>
      !new RegExp(`^export (?:async )?(?:function\\*?|class|const|interface) ${name}\\b`, "m").test(
        read(file!),
      ),
  );
  expect(missing).toEqual([]);
});

test("whatever else the walk names in a step is in a file of that step", () => {
  const steps = read("src/README.md").split(/\n(?=\d+\. |\n)/);
  const missing = steps.flatMap((step) => {
    const texts = [...step.matchAll(/`(src\/[^`]+\.ts)`/g)].map(([, file]) => read(file!));
    const names = [...step.matchAll(/`([a-z]\w*)`/gi)].map(([, name]) => name!);
    return texts.length === 0
      ? []
      : names.filter((name) => !texts.some((text) => new RegExp(`\\b${name}\\b`).test(text)));
  });
  expect(missing).toEqual([]);
});

test("npm scripts that people are told to run are there", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  for (const document of [
    "CONTRIBUTING.md",
    "README.md",
    "docs/ARCHITECTURE.md",
    "docs/performance.md",
    "docs/reliability.md",
  ]) {
    const told = [...read(document).matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name!);
    expect(
      told.filter((name) => scripts[name] === undefined),
      document,
    ).toEqual([]);
  }
});
