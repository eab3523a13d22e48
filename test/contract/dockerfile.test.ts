import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { inProject } from "../fixtures/command/project.ts";

const read = (file: string) => readFileSync(inProject(file), "utf8");

/** The instructions of the Dockerfile's last stage, and of those before it, with continued lines joined. */
const instructions = read("Dockerfile")
  .replaceAll(/\\\n\s*/g, "")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => /^([A-Z]+) (.*)$/.exec(line)!)
  .map(([, name, rest]) => [name!, rest!] as const);
const image = instructions.slice(instructions.findLastIndex(([name]) => name === "FROM"));
const of = (name: string) => image.filter(([own]) => own === name).map(([, rest]) => rest);

// no image can be built where these tests run
describe("the Dockerfile", () => {
  test("takes Node in the version that the project is tested with", () => {
    const { devDependencies } = JSON.parse(read("package.json")) as { devDependencies: { node: string } };
    const images = instructions.filter(([name]) => name === "FROM").map(([, rest]) => rest.split(" ")[0]);
    expect(images).toEqual(images.map(() => `node:${devDependencies.node}-bookworm-slim`));
  });

  test("runs runvault as its only process, not as root, on a volume that this user may write", () => {
    expect(of("USER")).toEqual(["1000:1000"]);
    expect(of("VOLUME")).toEqual(["/archive"]);
    expect(of("ENV")).toEqual(["RUNVAULT_ARCHIVE=/archive"]);
    // without the brackets a shell would be there to catch SIGTERM
    expect(of("ENTRYPOINT")).toEqual(['["runvault"]']);
    const order = image.map(([name]) => name);
    expect(order.indexOf("USER")).toBeGreaterThan(order.lastIndexOf("RUN"));
    expect(of("RUN").join()).toContain("install -d -o node -g node -m 0700 /archive");
  });

  test("asks status whether it is healthy", () => {
    expect(of("HEALTHCHECK").join()).toContain('CMD ["runvault", "status", "--max-age", "26h"]');
  });

  test("gets every file that the package is made of", () => {
    const sent = read(".dockerignore")
      .split("\n")
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1));
    const { files } = JSON.parse(read("package.json")) as { files: string[] };
    const needed = [
      ...files.filter((name) => !name.startsWith("!")),
      "src",
      "scripts",
      "package.json",
      "package-lock.json",
      ".npmrc",
      "rolldown.config.ts",
    ];
    const isSent = (file: string) => sent.some((path) => `${file}/`.startsWith(`${path}/`));
    expect(needed.filter((file) => file !== "dist" && !isSent(file))).toEqual([]);
    // read at run time: SQL, and the notebook that `runvault notebook` writes
    expect(files).toEqual(expect.arrayContaining(["dist", "notebooks", "src/analytics/sql"]));
    expect(sent.filter((file) => !file.includes("*") && !existsSync(inProject(file)))).toEqual([]);
  });
});

describe("package.json", () => {
  // npx would install the clone into its cache before each command, which takes minutes
  test("names no command in a clone, and that of the build while it is packed", () => {
    const { bin, scripts } = JSON.parse(read("package.json")) as {
      bin?: object;
      scripts: Record<string, string>;
    };
    expect(bin).toBeUndefined();
    expect(scripts.prepack).toContain("npm pkg set bin.runvault=dist/cli/main.js");
    expect(scripts.postpack).toBe("npm pkg delete bin");
    expect(scripts.build).toContain("ln -sf ../../dist/cli/main.js node_modules/.bin/runvault");
  });

  // npm warns of install scripts of a package, prepare among them
  test("has no script that npm would run where the package is installed", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const names = ["preinstall", "install", "postinstall", "prepare"];
    expect(names.filter((name) => name in scripts)).toEqual([]);
  });
});
