// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references to variables are shown as they are written
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";
import { requireNoneShown, secretPlaces } from "../fixtures/pipeline/secret-places.ts";

let folder: string;
let good: string;
let bad: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
  good = join(folder, "good.yaml");
  bad = join(folder, "bad.yaml");
  await writeFile(
    good,
    `version: 1
name: weekly
gateway: { url: "\${GATEWAY}", token: { env: TOKEN } }
archive: vault
runs: { instances: [alpha-*, "\${INSTANCE}"], ended_within: 30d, exclude: ["*/x"] }
tables: [fills, equity]
after: { exports: [{ tables: [fills], symbols: [BTC-PERP], last: 7d, out: week.parquet }] }
schedule: { cron: "15 2 * * MON", timezone: Europe/Berlin, jitter: 10m, deadline: 5h }
notify: { webhook: { url_env: ALERT }, command: [page] }
metrics: { textfile: r.prom }
`,
  );
  await writeFile(bad, "version: 1\nname: Bad\ngateway: {}\narchive: vault2\nruns: {}\n");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const env = {
  GATEWAY: "http://5ecret.example/api/v1",
  TOKEN: "5ecret-token",
  ALERT: "https://5ecret",
  INSTANCE: "5ecret-1",
};

describe("runvault check", () => {
  it("says what a sound job would do, and when", async () => {
    const { status, stdout, stderr } = await runInside(["check", good], { env });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const lines = stdout.replaceAll(`${folder}/`, "").trimEnd().split("\n");
    const starts = lines.splice(9);
    expect(lines).toEqual([
      "good.yaml: ok",
      "  job     weekly",
      "  from    ${GATEWAY}",
      "  into    vault",
      "  runs    finished, failed, growing of alpha-*, ${INSTANCE}; ended within 30d; but not */x",
      "  tables  fills, equity",
      "  then    verify changed; export fills (BTC-PERP; last 7d) to week.parquet",
      "  tells   webhook at ALERT (worse, mended), program page, metrics to r.prom",
      "  starts  15 2 * * MON in Europe/Berlin, each up to 10m later, for at most 5h:",
    ]);
    expect(starts).toHaveLength(5);
    for (const start of starts) {
      expect(start).toMatch(/^ {10}Mon \d{4}-\d\d-\d\d 02:15 \(\d{4}-\d\d-\d\d 0[01]:15 UTC\)$/);
    }
  });

  it("tells of a bad one beside it, and ends with 2", async () => {
    const { status, stdout, stderr } = await runInside(["check", good, bad], { env });
    expect({ status, stderr }).toEqual({ status: 2, stderr: "" });
    expect(stdout).toContain(`${good}: ok\n`);
    expect(stdout.replaceAll(`${folder}/`, "").split("\n\n")[1]).toBe(`\
bad.yaml:2:7: name must be 1 to 52 lower-case letters, digits and hyphens, with a letter or digit at both ends, not Bad
  hint: Write it so, for example \`name: nightly\`.
bad.yaml:3:1: gateway.url is missing
  hint: Add it, for example \`url: https://gateway.example.com/api/v1\`.
bad.yaml: 2 errors
`);
  });

  it("with --quiet prints only what is wrong", async () => {
    expect((await runInside(["check", "-q", good], { env })).stdout).toBe("");
    expect((await runInside(["check", "-q", good, bad], { env })).stdout).toContain("bad.yaml: 2 errors\n");
  });

  it("with --json gives the same as a document", async () => {
    const { status, stdout } = await runInside(["check", "--json", good, bad, "--set", "x"], { env });
    expect(status).toBe(2);
    const told = JSON.parse(stdout);
    expect(told).toMatchObject({
      ok: false,
      faults: [{ level: "error", file: null, line: null, column: null, set: "--set x", key: null }],
      files: [
        { file: good, ok: true, name: "weekly", faults: [] },
        {
          file: bad,
          ok: false,
          name: null,
          nextStarts: [],
          faults: [
            { level: "error", file: bad, line: 2, column: 7, set: null, key: "name", text: "Bad" },
            { level: "error", file: bad, line: 3, column: 1, set: null, key: "gateway.url", text: null },
          ],
        },
      ],
    });
    expect(told.files[0].nextStarts).toHaveLength(5);
    expect(stdout).not.toContain("5ecret");
  });

  it("says with a file that is not there what is not there", async () => {
    const { status, stdout } = await runInside(["check", join(folder, "none.yaml")], { env });
    expect(status).toBe(2);
    expect(stdout.replaceAll(`${folder}/`, "")).toBe(
      "none.yaml: the file does not exist\n  hint: Name a job file that this user can read.\nnone.yaml: 1 error\n",
    );
  });

  it("needs a file", async () => {
    const { status, stderr } = await runInside(["check"]);
    expect(status).toBe(2);
    expect(stderr).toContain("missing required argument 'files'");
  });
});

// each place with a third of the values, each value in a third of the places: test/all/secret-places.test.ts has the others
describe("what a variable holds is never shown", () => {
  let sound = 0;
  it.each(secretPlaces.map(({ 1: value }, nth) => ({ nth, value })))(
    "where it stands for $value, right or wrong",
    async ({ nth }) => {
      sound += await requireNoneShown(folder, nth, (valueNth) => (nth + valueNth) % 3 === 0);
    },
  );

  it("in many places, in some of which it is right", () => {
    expect(secretPlaces.length).toBeGreaterThan(35);
    expect(sound).toBeGreaterThan(8);
  });
});

describe("runvault schema", () => {
  it("knows one kind of file", async () => {
    const { status, stderr } = await runInside(["schema", "job"]);
    expect(status).toBe(2);
    expect(stderr).toContain("Allowed choices are pipeline");
  });
});
