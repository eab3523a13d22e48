import { spawnSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import { beginLine, resultLine, writeRecord } from "../fixtures/archive/job-records.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { builtMain as main } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";

/** What the shells' scripts are told for a command line whose last word is being typed. */
async function told(...words: string[]): Promise<{ values: string[]; directive: string }> {
  const { status, stdout, stderr } = await runInside(["complete", "--", ...words]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const lines = stdout.trimEnd().split("\n");
  return { values: lines.slice(0, -1).map((line) => line.split("\t")[0]!), directive: lines.at(-1)! };
}

describe("a command line is completed", () => {
  test("by commands, with their summaries", async () => {
    const { stdout } = await runInside(["complete", "--", "ex"]);
    expect(stdout).toBe("export\twrite tables as Parquet, Arrow, DuckDB, NDJSON or CSV\n:4\n");
    expect((await told("")).values).toEqual(expect.arrayContaining(["archive", "query", "completion"]));
  });

  test("by the names of tables, as arguments and as values", async () => {
    expect((await told("export", "")).values).toEqual(expect.arrayContaining([...tableNames]));
    expect((await told("export", "fills", "or")).values).toEqual(["orders", "order_book"]);
    expect((await told("export", "--list", "fa")).values).toEqual(["factors"]);
    expect((await told("maintain", "accept", "alpha/1", "fa")).values).toEqual(["factors"]);
    expect((await told("archive", "--tables", "f")).values).toEqual(["fills", "factors"]);
  });

  test("by options and by their choices", async () => {
    expect((await told("export", "--de")).values).toEqual(["--decimals"]);
    expect((await told("export", "fills", "--format", "arrow")).values).toEqual(["arrow", "arrow-stream"]);
    expect((await told("query", "-f", "n")).values).toEqual(["ndjson"]);
    expect((await told("completion", "")).values).toEqual(["bash", "zsh", "fish"]);
  });

  test("by the shell itself where a path is wanted", async () => {
    expect(await told("export", "--out", "")).toEqual({ values: [], directive: ":0" });
    expect(await told("query", "--archive", "x")).toEqual({ values: [], directive: ":0" });
    expect((await told("export", "--symbol", "")).directive).toBe(":4");
  });
});

describe("executions are completed", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "runvault-completion-"));
    const { layout } = await openArchive(join(folder, "archive"), { create: true });
    await writeRecord(layout, beginLine(1), resultLine());
    await writeRecord(layout, beginLine(2, { job: "weekly" }));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("by the names of jobs, and behind show by their ids, newest first", async () => {
    const at = ["--archive", join(folder, "archive")];
    expect((await told("jobs", ...at, "")).values).toEqual(["nightly", "weekly", "show"]);
    expect((await told("jobs", ...at, "show", "")).values).toEqual(["last", "00000002", "00000001"]);
    expect((await told("jobs", ...at, "show", "00000001")).values).toEqual(["00000001"]);
    expect((await told("jobs", ...at, "nightly", "")).values).toEqual([]);
    expect((await told("jobs", "--archive", folder, "")).values).toEqual(["show"]);
  });
});

describe("the script", () => {
  test.each(["bash", "zsh", "fish"])("for %s asks runvault", async (shell) => {
    const { status, stdout } = await runInside(["completion", shell]);
    expect(status).toBe(0);
    expect(stdout).toContain("runvault complete -- ");
  });

  test("for another shell is refused", async () => {
    const { status, stderr } = await runInside(["completion", "tcsh"]);
    expect(status).toBe(2);
    expect(stderr).toContain("Allowed choices are bash, zsh, fish");
  });
});

describe.skipIf(!requires("bash"))("bash", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "runvault-completion-"));
    const program = join(folder, "runvault");
    await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
    await chmod(program, 0o755);
    const { stdout } = await runInside(["completion", "bash"]);
    await writeFile(join(folder, "completion.bash"), stdout);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** What bash offers when Tab is pressed behind the words. */
  function offered(...words: string[]): string[] {
    // of the package bash-completion the script needs this one function
    const script = `
      _get_comp_words_by_ref() { words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur="\${COMP_WORDS[COMP_CWORD]}"; prev="\${COMP_WORDS[COMP_CWORD-1]}"; }
      compopt() { :; }
      source "$FOLDER/completion.bash"
      COMP_WORDS=(runvault "$@"); COMP_CWORD=$#
      asked=$(complete -p runvault); asked=\${asked#*-F }; \${asked%% *}
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { status, stdout, stderr } = spawnSync("bash", ["--norc", "-c", script, "bash", ...words], {
      encoding: "utf8",
      env: { PATH: `${folder}:${process.env.PATH}`, FOLDER: folder },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    return stdout.split("\n").filter(Boolean);
  }

  test("completes with it", () => {
    expect(offered("exp")).toEqual(["export"]);
    expect(offered("export", "fi")).toEqual(["fills"]);
    expect(offered("export", "fills", "--format", "")).toEqual(
      expect.arrayContaining(["parquet", "arrow-stream", "csv"]),
    );
  });
});
