import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";
import { start } from "../fixtures/command/command-process.ts";
import { builtMain, inProject } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";

const readme = readFileSync(inProject("README.md"), "utf8");
const [, lines = ""] = /^## Every night\n\n```sh\n(.*?)^```$/ms.exec(readme) ?? [];
const [, status = ""] = /^`(npx runvault status [^`]*)`/m.exec(readme) ?? [];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-readme-"));
  await mkdir(join(folder, "bin"));
  // npx finds runvault in an installed package only
  const npx = join(folder, "bin", "npx");
  await writeFile(npx, '#!/bin/sh\nshift\nexec "$NODE" "$MAIN" "$@"\n');
  await chmod(npx, 0o755);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the README's lines for every night", () => {
  test("are four", () => {
    expect(lines.trimEnd().split("\n")).toHaveLength(4);
  });

  test("end in an archive of proven runs and units that systemd takes", { timeout: 120_000 }, async () => {
    const { PATH = "", NODE_COMPILE_CACHE = "" } = process.env;
    const gateway = start(["simulate", "--rows", "2000"], { RUNVAULT_CACHE: join(folder, "cache") });
    onTestFinished(async () => {
      gateway.child.kill("SIGTERM");
      await gateway.finished;
    });
    const address = await gateway.firstLine();
    const child = spawn("bash", ["-eu"], {
      cwd: folder,
      env: {
        ...{ NODE: process.execPath, MAIN: builtMain, NODE_COMPILE_CACHE, HOME: folder },
        RUNVAULT_GATEWAY: address,
        RUNVAULT_ARCHIVE: join(folder, "archive"),
        TZ: "Australia/Lord_Howe",
        PATH: `${join(folder, "bin")}:${PATH}`,
      },
    });
    let told = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        told += chunk;
      });
    }
    child.stdin.end(`${lines}${status}\n`);
    const [ended] = (await once(child, "close")) as [number | null];
    expect({ ended, told }).toEqual({ ended: 0, told: expect.stringMatching(/next start /) });
    expect(status).not.toBe("");
    expect(told).toContain("found   gateway: 1 instance; 2 runs of this job (2 new)");
    expect(told).toContain("nightly: 2 new");

    const { stdout } = await runInside(["runs", "--json", "--archive", join(folder, "archive")]);
    const { runs } = JSON.parse(stdout) as { runs: { state: string }[] };
    expect(runs.map(({ state }) => state)).toEqual(["COMPLETE", "COMPLETE"]);

    const file = await readFile(join(folder, "nightly.yaml"), "utf8");
    expect(file).toContain(`\n  url: ${address}\n`);
    expect(file).toContain("\n  timezone: Australia/Lord_Howe # from the machine");
    const units = [
      ...(await readFile(join(folder, "units"), "utf8")).matchAll(
        /^# (\/etc\/systemd\/system\/\S+)\n([\s\S]*?)(?=^# \/etc\/|$(?![\s\S]))/gm,
      ),
    ];
    expect(units.map(([, at]) => basename(at!))).toEqual([
      "runvault-nightly.service",
      "runvault-nightly.timer",
    ]);
    if (!requires("systemd")) return;
    const paths = units.map(([, at]) => join(folder, basename(at!)));
    for (const [index, [, , content]] of units.entries()) await writeFile(paths[index]!, content!);
    const verified = spawnSync("systemd-analyze", ["verify", ...paths], { encoding: "utf8" });
    expect(verified).toMatchObject({ status: 0, stdout: "", stderr: "" });
  });
});
