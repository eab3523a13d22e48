import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  demandedRequirements,
  missingFileVariable,
  mountNamespace,
  requirements,
  requires,
  unprivilegedUser,
} from "../fixtures/command/requirement.ts";

const module = new URL("../fixtures/command/requirement.ts", import.meta.url).href;

/** Asks for a requirement in a process of its own, on a machine that has only what `path` holds. */
function ask(requirement: string, environment: Record<string, string>) {
  const script = `import { requires } from ${JSON.stringify(module)}; console.log(requires(${JSON.stringify(requirement)}));`;
  return spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    env: { PATH: "/nothing-here", ...environment },
    encoding: "utf8",
  });
}

describe("a requirement that the machine lacks", () => {
  test("is noted for the list at the end of the run", () => {
    const folder = mkdtempSync(join(tmpdir(), "runvault-missing-"));
    const file = join(folder, "missing");
    const { status, stdout, stderr } = ask("zstd", { [missingFileVariable]: file });
    expect([status, stdout, stderr]).toEqual([0, "false\n", ""]);
    expect(readFileSync(file, "utf8")).toBe("zstd\n");
    rmSync(folder, { recursive: true });
  });

  test("is an error where RUNVAULT_REQUIRE names it", () => {
    const { status, stderr } = ask("zstd", { RUNVAULT_REQUIRE: "python, zstd" });
    expect(status).not.toBe(0);
    expect(stderr).toContain("RUNVAULT_REQUIRE names zstd");
  });

  test("is no error where RUNVAULT_REQUIRE names another", () => {
    expect(ask("zstd", { RUNVAULT_REQUIRE: "python" }).stdout).toBe("false\n");
  });
});

test("a misspelt name in RUNVAULT_REQUIRE is an error", () => {
  expect([...demandedRequirements("")]).toEqual([]);
  expect([...demandedRequirements(requirements.join(" , "))]).toEqual(requirements);
  expect(() => demandedRequirements("python,pythno")).toThrow("pythno");
});

test.skipIf(!requires("tmpfs"))("a mount in the namespace is seen by nobody else", () => {
  const script = "mount -t tmpfs -o size=64k tmpfs /mnt && touch /mnt/runvault-seen && ls /mnt";
  const [program = "", ...args] = [...mountNamespace, "sh", "-c", script];
  expect(execFileSync(program, args, { encoding: "utf8" })).toBe("runvault-seen\n");
  expect(execFileSync("ls", ["/mnt"], { encoding: "utf8" })).not.toContain("runvault-seen");
});

test.skipIf(!requires("unprivileged"))("the unprivileged user is not root", () => {
  const { stdout } = spawnSync(process.execPath, ["--print", "process.getuid()"], {
    ...unprivilegedUser,
    cwd: "/",
    encoding: "utf8",
  });
  expect(Number(stdout)).toBeGreaterThan(0);
});
