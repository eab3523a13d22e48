import { chmod, copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import type { Terminal } from "../../src/cli/output/terminal.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { Corvid, corvidProfile } from "../fixtures/foreign/corvid/corvid.ts";
import { ForeignGateway } from "../fixtures/foreign/foreign-gateway.ts";
import { dialects } from "../fixtures/foreign/foreign-gateways.ts";

const fixtures = join(import.meta.dirname, "../fixtures/foreign");
const env = { ACME_CLIENT: "runvault-tests" };
let folder: string;
let acme: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-profile-check-"));
  acme = await readFile(join(fixtures, "acme.yaml"), "utf8");
  await copyFile(join(fixtures, "acme.key"), join(folder, "acme.key"));
  await chmod(join(folder, "acme.key"), 0o600);
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Checks a profile against a new gateway; its address is that of docs/profiles.md. */
async function check(profile: string, args: readonly string[] = [], terminal: Partial<Terminal> = {}) {
  await using gateway = await ForeignGateway.open(dialects.acme);
  const file = join(folder, "acme.yaml");
  await writeFile(file, profile);
  const line = ["profile", "check", "--gateway", gateway.url, "--profile", file, ...args];
  const { status, stdout, stderr } = await runInside(line, { env, ...terminal });
  const shown = (text: string) =>
    text.replaceAll(gateway.url, "http://127.0.0.1:8080").replaceAll(file, "acme.yaml");
  return { status, stdout: shown(stdout), stderr: shown(stderr) };
}

const threeMistakes = (text: string) =>
  text
    .replace("ts_event: { from: time, unit: ms }", "ts_event: time")
    .replace("to: inclusive }", "to: exclusive }")
    .replace("next: page.next", "next: page.cursor");

// `latest` was refused, as an id that no gateway is asked for
test("INSTANCE/latest is the run that began last by the profile's lists", async () => {
  const { stdout } = await check(acme, ["--json"]);
  const [instance] = JSON.parse(stdout).run.split("/");
  const latest = await check(acme, [`${instance}/latest`]);
  expect(latest.stderr).toContain(`${instance}/latest is ${instance}/`);
});

describe("docs/profiles.md", () => {
  it("has the profile that is tested, and prints what the check of it prints", async () => {
    const text = await readFile(join(import.meta.dirname, "../../docs/profiles.md"), "utf8");
    const [, yaml] = /```yaml\n(profile: 1\n.*?)```/s.exec(text) ?? [];
    expect(yaml).toBe(acme);
    const [first, whole, load] = [...text.matchAll(/```text\n\$ [^\n]*\n(.*?)```/gs)].map(
      ([, shown]) => shown,
    );
    const wrong = await check(threeMistakes(acme), ["-q"]);
    expect(wrong.stdout).toBe(first);
    expect(wrong.status).toBe(4);
    const right = await check(acme);
    // the document leaves lines out
    const parts = whole!.split(/^ +…\n/m);
    let rest = right.stdout;
    for (const part of parts) {
      expect(rest).toContain(part);
      rest = rest.slice(rest.indexOf(part) + part.length);
    }
    expect(right.stdout.startsWith(parts[0]!)).toBe(true);
    expect(rest).toBe("");
    expect(right.status).toBe(0);
    const unread = await check(acme.replace("quantity: qty", "quantitty: qty"));
    expect(unread.stderr).toBe(load);
    expect(unread.status).toBe(2);
  });
});

describe("runvault profile check", () => {
  it("names a wrong bound once the times of rows are right", async () => {
    const { status, stdout } = await check(acme.replace("to: inclusive }", "to: exclusive }"), ["-q"]);
    expect(stdout).toContain("tables.fills.times.to: ");
    expect(stdout).toContain("hint: Write `times: { to: inclusive }`.");
    expect(status).toBe(4);
  });

  it("reports the same as JSON, exact values as text", async () => {
    const { status, stdout } = await check(threeMistakes(acme), ["--json"]);
    const told = JSON.parse(stdout);
    expect(told).toMatchObject({ ok: false, profile: "acme", run: "north/2026-01-05", none: ["orders"] });
    expect(
      told.tables[0].findings.map(({ kind, key }: { kind: string; key: string }) => [kind, key]),
    ).toEqual([
      ["time_unit", "tables.fills.columns.ts_event"],
      ["page_kind", "tables.fills.pages.next"],
    ]);
    expect(status).toBe(4);
  });

  it("fits the terminal, and colours marks only where there are colours", async () => {
    const colourCode = String.fromCharCode(27);
    const plain = await check(acme, [], { columns: 80, stdoutIsTerminal: true });
    const longest = Math.max(...plain.stdout.split("\n").map((line) => line.length));
    expect(longest).toBeLessThanOrEqual(80);
    expect(plain.stdout).not.toContain(colourCode);
    const coloured = await check(threeMistakes(acme), [], { stdoutIsTerminal: true, hasColours: true });
    expect(coloured.stdout).toContain(`${colourCode}[31mwrong`);
    expect(coloured.stdout).toContain(`${colourCode}[32mok`);
  });

  it("checks a gateway of RPC alone: 0 where all is well, 4 where something is wrong, 2 where it does not load", async () => {
    const right = await readFile(corvidProfile, "utf8");
    await copyFile(join(dirname(corvidProfile), "corvid.binpb"), join(folder, "corvid.binpb"));
    await using gateway = await Corvid.open();
    const file = join(folder, "corvid.yaml");
    const status = async (text: string, wanted: number) => {
      await writeFile(file, text);
      const line = ["profile", "check", "--gateway", gateway.url, "--profile", file, "--json"];
      const ended = await runInside(line, { env });
      expect(ended.status).toBe(wanted);
      return ended;
    };
    const told = JSON.parse((await status(right, 0)).stdout);
    expect(told).toMatchObject({ ok: true, profile: "corvid", run: "north/2026-01-05", findings: [] });
    expect(told.tables.map(({ table, requests }: Record<string, unknown>) => [table, requests])).toEqual([
      ["fills", 11],
      ["factors", 11],
    ]);
    const wrong = JSON.parse((await status(right.replace("limit: page_size", "limit: since_ns"), 4)).stdout);
    expect(wrong.tables[1].findings[0]).toMatchObject({
      kind: "not_heeded",
      key: "rpc.tables.factors.parameters.limit",
    });
    const { stderr } = await status(right.replace("rows: trades", "rows: trade"), 2);
    expect(stderr).toContain("Did you mean trades?");
  });

  it("needs a profile, and shows no secret", async () => {
    const { status, stderr } = await runInside(["profile", "check", "--gateway", "http://127.0.0.1:9"], {
      env,
    });
    expect(status).toBe(2);
    expect(stderr).toContain("Give --profile FILE");
    const secret = (await readFile(join(fixtures, "acme.key"), "utf8")).trim();
    const { stdout, stderr: told } = await check(acme, ["--json"]);
    expect(`${stdout}${told}`).not.toContain(secret);
  });
});
