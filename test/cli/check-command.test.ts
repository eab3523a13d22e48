// @module-tag slow
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references to variables are shown as they are written
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";

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
  hint: For example, write \`name: nightly\`.
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

describe("what a variable holds is never shown", () => {
  const whole = `version: 1
name: nightly
gateway:
  url: http://h/api/v1
  source_alias: [http://i/api/v1]
  transport: rest
  token: { file: token }
  token_header: X-Key
  tls: { ca: ca.pem, cert: c.pem, key: k.pem }
  budget: { connect: 10s, bytes: 2GB, min_rate: 1KB }
  keeps: 14d
  finished_status: [DONE]
archive: vault
scratch: scratch
runs: { instances: [alpha-1], status: [finished], ended_within: 30d, exclude: [a/b] }
tables: [fills]
empty: [factors]
require: any
widen: auto
after:
  verify: deep
  exports: [{ tables: [fills], symbols: [BTC], last: 7d, format: csv, out: a.csv, decimals: exact }]
schedule: { cron: "15 2 * * *", timezone: Etc/UTC, jitter: 1m, deadline: 5h, catch_up: 20h }
notify: { heartbeat: { url_env: BEAT }, webhook: { url_env: ALERT, on: [worse] }, command: [page], remind: 7d }
metrics: { textfile: r.prom }
keep: { jobs: 90d }
`;
  const places = [...whole.matchAll(/[[:] ?((?:"[^"]*")|[\w./:-]+)(?=[\],\n}]| [}])/g)].filter(
    ([, value]) => !["1", "", "http"].includes(value!),
  );
  const values = [
    ...[
      "zq5ecret",
      "ZQ5ECRET",
      "http://zq5ecret/api/v1",
      "https://zq5ecret:pass@h/x",
      "zq5ecret/2022",
      "/zq5ecret.prom",
    ],
    ...[
      "zq5ecret.csv",
      "countedd zq5ecret",
      "zq5ecret[1]",
      "zq5ecret\n  x: y",
      "Pacific/zq5ecret",
      "zq5ecret * * * *",
    ],
  ];

  let sound = 0;
  it.each(places.map((place, nth) => ({ nth, index: place.index, found: place[0], value: place[1]! })))(
    "where it stands for $value, right or wrong",
    async ({ nth, index, found, value }) => {
      const [first, second] = [join(folder, "first.yaml"), join(folder, "second.yaml")];
      const at = index + found.length - value.length;
      const text = `${whole.slice(0, at)}"\${V}"${whole.slice(at + value.length)}`;
      await writeFile(first, text);
      await writeFile(second, text);
      for (const [index, content] of values.entries()) {
        // in npm test a third of the values, others at each place
        if (((nth + index) % 3 === 0) === isTestAll) continue;
        const env = { V: content, ZQ5ECRET: "http://zq5ecret", BEAT: "http://h", ALERT: "http://h" };
        // each place and each value in both
        const form = (nth + index) % 2 === 0 ? [] : ["--json"];
        const { stdout, stderr } = await runInside(["check", first, second, ...form], { env });
        expect(stdout).not.toMatch(/zq5ecret/i);
        expect(stderr).toBe("");
        if (stdout.includes("first.yaml: ok")) sound++;
      }
    },
  );

  it("in many places, in some of which it is right", () => {
    expect(places.length).toBeGreaterThan(35);
    expect(sound).toBeGreaterThan(isTestAll ? 16 : 8);
  });
});

describe("runvault schema", () => {
  it("knows one kind of file", async () => {
    const { status, stderr } = await runInside(["schema", "job"]);
    expect(status).toBe(2);
    expect(stderr).toContain("Allowed choices are pipeline");
  });
});
