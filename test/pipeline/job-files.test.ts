// @module-tag slow
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what is put in their place is tested here
import { readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { type JobFilesOptions, readJobFiles } from "../../src/pipeline/file/job-files.ts";
import { jobJsonSchema } from "../../src/pipeline/file/job-json-schema.ts";
import { inProject } from "../fixtures/command/project.ts";
import { trialCount } from "../fixtures/trials/trials.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const base = `version: 1
name: nightly
gateway: { url: http://127.0.0.1:8080/api/v1 }
archive: vault
runs: {}
`;

/** Reads files of these texts, which are named job-0.yaml and so on. */
async function read(texts: readonly string[], options: JobFilesOptions = { env: {} }) {
  const paths = texts.map((_, index) => join(folder, `job-${index}.yaml`));
  await Promise.all(texts.map((text, index) => writeFile(paths[index]!, text)));
  const { files, faults } = await readJobFiles(paths, options);
  const told = [...faults, ...files.flatMap((file) => file.faults)].map(
    ({ level, file, line, column, message }) =>
      `${level} ${[file, line, column].filter((part) => part !== null).join(":")}: ${message}`.replaceAll(
        `${folder}/`,
        "",
      ),
  );
  return { files, told };
}

/** The job of one sound file. */
async function jobOf(text: string, options: JobFilesOptions = { env: {} }) {
  const { files, told } = await read([text], options);
  expect(told).toEqual([]);
  return files[0]!.job!.job;
}

describe("a job file as it is read", () => {
  test("has every default filled in", async () => {
    const { runs, ...job } = await jobOf(base);
    expect(job).toMatchObject({
      version: 1,
      name: "nightly",
      archive: join(folder, "vault"),
      tables: "all",
      empty: [],
      parallel_runs: 4,
      per_run: { ms: 3_600_000, ns: 3_600_000_000_000n },
      settle: { ms: 60_000 },
      recheck: { ms: 7 * 86_400_000 },
      require: "any",
      final_pass: "rows",
      after: { verify: "changed", exports: [] },
      notify: { remind: { ms: 7 * 86_400_000 } },
      keep: { jobs: { ms: 90 * 86_400_000 } },
      gateway: {
        source_alias: [],
        transport: "auto",
        compression: true,
        accept_unframed: false,
        finished_status: [],
        budget: {
          rps: 20,
          answers: 4,
          retries: 5,
          connect: { ms: 10_000 },
          headers: { ms: 60_000 },
          idle: { ms: 60_000 },
          document: { ms: 120_000 },
        },
      },
    });
    expect(job).not.toHaveProperty("schedule");
    expect(job).not.toHaveProperty("metrics");
    expect(job).not.toHaveProperty("run");
    expect(runs).toMatchObject({ status: ["finished", "failed", "growing"], exclude: [] });
    expect(runs?.instances.map(({ pattern }) => pattern)).toEqual(["*"]);
  });

  test("has units, sizes, rates and places as programs want them", async () => {
    const job = await jobOf(
      `version: 1
name: all
gateway:
  url: https://h/api/v1
  token: { env: TOKEN }
  budget: { rps: 0.5, bytes: 2GB, min_rate: 64KB, connect: 1.5s }
  tls: { ca: tls/ca.pem }
  keeps: 2w
archive: /data/archive
scratch: ../scratch
run: alpha%2F1/2022/01
after:
  exports:
    - { tables: [fills], out: out/fills.parquet }
    - { out: lake, format: ndjson, partition: run, last: 90min }
schedule: { cron: " 15 2 * * * ", timezone: Etc/UTC, deadline: 5h }
notify: { command: [bin/page, bin/x], heartbeat: { url_env: BEAT } }
metrics: { textfile: run.prom }
`,
      { env: { TOKEN: "t", BEAT: "https://b/x" } },
    );
    expect(job).toMatchObject({
      gateway: {
        token: { kind: "env", name: "TOKEN" },
        budget: { rps: 0.5, bytes: 2 * 1024 ** 3, min_rate: 65_536, connect: { ms: 1500 } },
        tls: { ca: join(folder, "tls/ca.pem") },
        keeps: { ms: 14 * 86_400_000 },
      },
      archive: "/data/archive",
      scratch: join(folder, "../scratch"),
      run: { instanceId: "alpha/1", runId: "2022/01" },
      after: {
        exports: [
          { tables: ["fills"], format: "parquet", decimals: "exact", out: join(folder, "out/fills.parquet") },
          { tables: "all", format: "ndjson", partition: "run", last: { ms: 5_400_000 } },
        ],
      },
      schedule: {
        cron: "15 2 * * *",
        timezone: "Etc/UTC",
        jitter: { ms: 0 },
        deadline: { ms: 18_000_000 },
        grace: { ms: 300_000 },
        catch_up: { ms: 0 },
      },
      notify: { command: [join(folder, "bin/page"), "bin/x"], heartbeat: { url_env: "BEAT" } },
      metrics: { textfile: join(folder, "run.prom") },
    });
  });

  test("has paths from where it was named, through whatever links, and is one job by each of its names", async () => {
    await mkdir(join(folder, "..data"));
    await writeFile(join(folder, "..data/job.yaml"), base);
    await symlink(join(folder, "..data/job.yaml"), join(folder, "job.yaml"));
    const { files } = await readJobFiles([join(folder, "job.yaml"), join(folder, "..data/job.yaml")], {
      env: {},
    });
    expect(files.map(({ job }) => job?.job.archive)).toEqual([join(folder, "vault")]);
  });

  test("may end its lines as Windows does", async () => {
    expect((await jobOf(base.replaceAll("\n", "\r\n"))).name).toBe("nightly");
    const { told } = await read([`${base}rechek: 7d\n`.replaceAll("\n", "\r\n")]);
    expect(told).toEqual(["error job-0.yaml:6:1: there is no key rechek"]);
  });

  test("cannot be something that never ends, nor something that is no file", async () => {
    const told = await readJobFiles([folder, "/dev/zero", join(folder, "none.yaml")], { env: {} });
    expect(told.files.map(({ faults }) => faults[0]?.message)).toEqual([
      "the file is not a regular file",
      "the file is not a regular file",
      "the file does not exist",
    ]);
  });
});

describe("patterns", () => {
  test.each([
    ["alpha-*", ["alpha-", "alpha-1", "alpha-1-2"], ["alpha", "xalpha-1"]],
    ["?lpha", ["alpha", "ålpha", "😀lpha"], ["lpha", "aalpha"]],
    ["*-*-?", ["a-b-c", "--x", "a-b-c-d"], ["a-b", "a-b-"]],
    ["a%2Fb*", ["a/b", "a/bc"], ["a%2Fb"]],
    ["beta.2", ["beta.2"], ["betaX2"]],
  ])("%s", async (pattern, yes, no) => {
    const { runs } = await jobOf(base.replace("{}", `{ instances: ["${pattern}"] }`));
    const [glob] = runs!.instances;
    expect(yes.filter((name) => !glob!.matches(name))).toEqual([]);
    expect(no.filter((name) => glob!.matches(name))).toEqual([]);
    expect(glob!.isExact).toBe(!/[*?]/.test(pattern));
  });

  test("of runs are two, parted at the first slash", async () => {
    const { runs } = await jobOf(base.replace("{}", '{ exclude: ["*-1/2022/*"] }'));
    const [{ instance, run }] = runs!.exclude as [(typeof runs & object)["exclude"][number]];
    expect([instance.matches("a-1"), instance.matches("a-1/2022"), run.matches("2022/x")]).toEqual([
      true,
      false,
      true,
    ]);
  });

  test("take no longer for being hard", async () => {
    const { runs } = await jobOf(base.replace("{}", `{ instances: ["${"a*".repeat(40)}b"] }`));
    expect(runs!.instances[0]!.matches("a".repeat(5_000))).toBe(false);
  });
});

describe("the environment", () => {
  test.each([
    ["${A}", "one"],
    ["x${A}y${B:-two}z", "xoneytwoz"],
    ["${EMPTY:-two}", "two"],
    ["${A:-two}", "one"],
    ["$${A}", "${A}"],
    ["$A $$ ${A}$", "$A $$ one$"],
    ["${HOSTILE}", "x, archive: /etc # ${A}"],
    ["${B:-}x", "x"],
  ])("%s is %s", async (written, value) => {
    const env = { A: "one", EMPTY: "", HOSTILE: "x, archive: /etc # ${A}" };
    const { gateway } = await jobOf(
      base.replace(/gateway.*/, () => `gateway: { url: http://h, finished_status: ['${written}'] }`),
      { env },
    );
    expect(gateway.finished_status).toEqual([value]);
  });

  test("is not put into keys, comments or what --set names", async () => {
    const { told } = await read([`${base}# \${NONE}\n\${A}: x\n`], { env: { A: "tables" } });
    expect(told).toEqual(['error job-0.yaml:7:1: there is no key "${A}"']);
  });

  test("may hold an address with a password, which the file may not", async () => {
    const { gateway } = await jobOf(base.replace("http://127.0.0.1:8080/api/v1", '"${URL}"'), {
      env: { URL: "https://u:5ecret@h/api/v1" },
    });
    expect(gateway.url).toBe("https://u:5ecret@h/api/v1");
  });

  test("never comes out in what a sound file is said to have", async () => {
    const env = { NAME: "secret-name", URL: "https://u:5ecret@h/api/v1", RUN: "alpha/5ecret" };
    const text =
      "version: 1\nname: ${NAME}\ngateway: { url: '${URL}' }\narchive: ${DIR:-vault}\nrun: ${RUN}\n";
    const { files } = await read([text], { env });
    const { written } = files[0]!.job!;
    expect([written("name"), written("gateway", "url"), written("archive"), written("run")]).toEqual([
      "${NAME}",
      "${URL}",
      "${DIR:-vault}",
      "${RUN}",
    ]);
    expect(written("tables")).toBeNull();
  });
});

describe("--set", () => {
  test("goes over the file, the last one over those before, before the environment is put in", async () => {
    const text = `${base}recheck: \${NONE}\nafter: { exports: [{ tables: [fills], out: a.parquet }] }\n`;
    const job = await jobOf(text, {
      env: { DAYS: "3d" },
      set: [
        "recheck=1d",
        "recheck=${DAYS}",
        "gateway.budget.rps=5",
        "tables=[fills, orders]",
        "after.exports.0.last=30d",
        'after.exports.1={ tables: [bars], out: "b.csv" }',
        "runs.instances=[alpha-1]",
      ],
    });
    expect(job.recheck.ms).toBe(3 * 86_400_000);
    expect(job.gateway.budget.rps).toBe(5);
    expect(job.tables).toEqual(["fills", "orders"]);
    expect(job.after.exports.map(({ format, last }) => [format, last?.ms])).toEqual([
      ["parquet", 30 * 86_400_000],
      ["csv", undefined],
    ]);
    expect(job.runs?.instances[0]?.isExact).toBe(true);
  });

  test("never shows what may be a token", async () => {
    const { files } = await read([base], { env: {}, set: ["gateway.token=5ecretXyz"] });
    expect(files[0]!.faults).toHaveLength(1);
    expect(JSON.stringify(files[0]!.faults)).not.toContain("5ecret");
  });
});

describe("several files", () => {
  const other = (changes: string) => base.replace("nightly", "other").replace("vault", "vault2") + changes;

  test("may not have one name", async () => {
    const { told, files } = await read([base, base.replace("vault", "vault2")]);
    expect(told).toEqual([
      "error job-1.yaml:2:7: name: the job name nightly is already used by job-0.yaml:2",
    ]);
    expect(files.map(({ job }) => job === null)).toEqual([false, true]);
  });

  test("may not write to one place, however it is written, nor into an archive of the other", async () => {
    const first = `${base}after: { exports: [{ tables: [fills], out: week/../a.csv }] }\nmetrics: { textfile: r.prom }\n`;
    const { told } = await read([
      first,
      other(
        `after:
  exports:
    - { tables: [bars], out: ${folder}/a.csv }
    - { tables: [bars], out: vault/b.csv }
metrics: { textfile: ./r.prom }
`,
      ),
    ]);
    expect(told).toEqual([
      `error job-1.yaml:8:30: after.exports.0.out: the export target a.csv is already used by job-0.yaml:6`,
      "error job-1.yaml:9:30: after.exports.1.out lies in an archive, whose folder holds nothing else",
      "error job-1.yaml:10:22: metrics.textfile: the metrics file ./r.prom is already used by job-0.yaml:7",
    ]);
  });

  test("may share an archive, and names that the environment gives stay unseen", async () => {
    const { told } = await read([base.replace("nightly", "${NAME}"), base.replace("nightly", "${NAME}")], {
      env: { NAME: "secret-name" },
    });
    expect(told).toEqual(["error job-1.yaml:2:7: name: the job name is already used by job-0.yaml:2"]);
  });
});

describe("secrets", () => {
  const withToken = base.replace(" }", ", token: { file: token } }");

  test("that others can read are told of", async () => {
    await writeFile(join(folder, "token"), "t", { mode: 0o600 });
    expect((await read([withToken])).told).toEqual([]);
    await chmod(join(folder, "token"), 0o644);
    const { told, files } = await read([withToken]);
    expect(told).toEqual(["warning job-0.yaml:3:62: gateway.token.file: every user can read this file"]);
    expect(files[0]!.job).not.toBeNull();
  });

  test("that are not there are, too", async () => {
    expect((await read([withToken])).told).toEqual([
      "warning job-0.yaml:3:62: gateway.token.file: this file does not exist here",
    ]);
  });
});

describe("whatever a file holds", () => {
  const words = fc.constantFrom(
    ...["version", "name", "gateway", "url", "runs", "run", "after", "exports", "schedule", "cron", "token"],
    ...["timezone", "notify", "webhook", "on", "instances", "__proto__", "constructor", "<<", "*", "${A}"],
  );
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom<unknown>(
        1,
        "1",
        null,
        true,
        "all",
        "7d",
        "a/b",
        "http://h",
        "${A}",
        "${",
        -1,
        Number.POSITIVE_INFINITY,
        "",
        ...[{}, [], 4, ["fills"], ["a", "a"], ["alpha-*"], ["*/x"], ["worse"], "counted", "finished"],
        ...["0 3 * * *", "UTC", "a.prom", "a.csv", "A_NAME", "$${A}", "0s", "05MiB", "90min", "a/${A}"],
      ),
      fc.string({ unit: "binary", maxLength: 20 }),
      fc.double(),
      fc.array(tie("any"), { maxLength: 4 }),
      fc.array(fc.tuple(words, tie("any")), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
    ),
  })).any;

  test("that is YAML, it is read or refused with places", async () => {
    await fc.assert(
      fc.asyncProperty(value, async (content) => {
        const { files } = await read([stringify(content)], { env: { A: "5ecret-of-A" } });
        const [{ job, faults }] = files as [(typeof files)[0]];
        expect(job === null).toBe(faults.some(({ level }) => level === "error"));
        expect(JSON.stringify(faults)).not.toContain("5ecret-of-A");
        for (const { line, column, message, hint } of faults) {
          expect([line !== null && line >= 1, column !== null && column >= 1]).toEqual([true, true]);
          expect(message).not.toBe("");
          expect(hint).toMatch(/[.?]$/);
        }
      }),
      { numRuns: trialCount(20) },
    );
  });

  const accepts = new Ajv2020({ strict: false }).compile(jobJsonSchema());

  test("where a sound file has anything else in one place", async () => {
    const sound = parse(readFileSync(inProject("pipelines/nightly.yaml"), "utf8")) as Record<string, unknown>;
    const paths = pathsOf(sound);
    const env = { GATEWAY_URL: "http://h/api/v1", HEARTBEAT_URL: "http://h", ALERT_URL: "http://h" };
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths), value, async (path, content) => {
        const text = stringify(withAt(sound, path, content));
        const { files } = await read([text], { env: { ...env, A: "5ecret-of-A" } });
        const errors = files[0]!.faults.filter(({ level }) => level === "error");
        expect(files[0]!.job === null).toBe(errors.length > 0);
        expect(JSON.stringify(errors)).not.toContain("5ecret-of-A");
        // an editor must not underline what runs
        if (files[0]!.job !== null) expect([text, accepts(parse(text))]).toEqual([text, true]);
        // nothing is told of what was not touched, but for what two keys have to do with each other
        const top = String(path[0]);
        expect(errors.filter(({ key }) => key !== null && !key.startsWith(top) && key !== "run")).toEqual([]);
      }),
      { numRuns: trialCount(40) },
    );
  });

  test("that are bytes, too", async () => {
    const characters = fc.constantFrom(
      ..."abc:-[]{}&*!|>'\"%@`#,?~ \n\n\t\r\ufeff\u0000\u0085\u2028é😀${}".match(/./gsu)!,
    );
    const text = fc.array(characters, { maxLength: 60 }).map((parts) => parts.join(""));
    await fc.assert(
      fc.asyncProperty(text, fc.boolean(), async (content, isBehind) => {
        const { files } = await read([isBehind ? base + content : content]);
        expect(files[0]!.job === null || isBehind).toBe(true);
      }),
      { numRuns: trialCount(40) },
    );
  });

  test.each([
    ["brackets", "[".repeat(60_000)],
    ["braces", "{a: ".repeat(15_000)],
    ["dashes", "- ".repeat(30_000)],
    ["keys", Array.from({ length: 350 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n")],
    ["quoted keys", '? "'.repeat(20_000)],
    ["aliases", `a: &a [x]\n${"b: [*a,*a,*a,*a]\n".repeat(3_000)}`],
  ])("however deep or long: %s", async (_, text) => {
    const started = performance.now();
    const { files } = await read([text]);
    expect(files[0]!.job).toBeNull();
    expect(files[0]!.faults.length).toBeGreaterThan(0);
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});

/** Every path of a document. */
function pathsOf(value: unknown, path: readonly (string | number)[] = []): (string | number)[][] {
  const inside = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const own = path.length === 0 ? [] : [[...path]];
  const step = (key: string) => (Array.isArray(value) ? Number(key) : key);
  return [...own, ...inside.flatMap(([key, part]) => pathsOf(part, [...path, step(key)]))];
}

/** A document with something else at a path. */
function withAt(value: unknown, [step, ...rest]: readonly (string | number)[], content: unknown): unknown {
  if (step === undefined) return content;
  const inside = (value as Record<string | number, unknown>)[step];
  const changed = withAt(inside, rest, content);
  return Array.isArray(value)
    ? value.map((part: unknown, index) => (index === step ? changed : part))
    : { ...(value as object), [step]: changed };
}
