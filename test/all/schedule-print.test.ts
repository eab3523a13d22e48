// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references to variables are shown as they are written
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { builtMain } from "../fixtures/command/project.ts";
import { requires } from "../fixtures/command/requirement.ts";

const env = {
  ...process.env,
  GATEWAY_URL: "http://5ecret.example/api/v1",
  ALERT_URL: "https://5ecret.example",
};
let folder: string;
/** A job file with all that printing looks at, under a name that no scheduler takes as it is. */
let file: string;
/** The same without what may be left out. */
let plain: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
  const odd = join(folder, `a $HOME %n \\%t "q" it's`);
  await mkdir(odd);
  file = join(odd, "job;#.yaml");
  plain = join(folder, "plain.yaml");
  await writeFile(
    file,
    `version: 1
name: nightly
gateway: { url: "\${GATEWAY_URL}", token: { file: secret/token }, tls: { ca: ca.pem } }
archive: \${ARCHIVE:-/data/my archive}
scratch: "sc ratch"
runs: {}
after: { exports: [{ tables: [fills], out: out/x.parquet }, { tables: [fills], out: out/y.parquet }] }
schedule: { cron: "30 2 1,15 * MON-FRI", timezone: Europe/Berlin, jitter: 2s, deadline: 5h, catch_up: 20h, grace: 2m }
notify: { webhook: { url_env: ALERT_URL }, command: [page] }
metrics: { textfile: /var/lib/node_exporter/runvault.prom }
`,
  );
  await writeFile(
    plain,
    `version: 1
name: plain
gateway: { url: http://127.0.0.1:1/api/v1 }
archive: vault
runs: {}
schedule: { cron: "*/5 * * * *", timezone: Etc/UTC }
`,
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function printed(kind: string, path: string, ...more: string[]): string {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [builtMain, "schedule", "--print", kind, path, ...more],
    { env, encoding: "utf8" },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).not.toContain("5ecret");
  return stdout;
}

/** What a program that stands for runvault was given, one argument a line. */
const notifier = "const [, , ...words] = process.argv; console.log(JSON.stringify(words));";

describe("units of systemd", () => {
  /** Writes both units, each from behind the line with its path; gives where. */
  async function unitsOf(path: string): Promise<string[]> {
    const units = await mkdtemp(join(folder, "units-"));
    const text = printed("systemd", path);
    const paths: string[] = [];
    for (const [, at = "", content = ""] of text.matchAll(
      /^# (\/etc\/systemd\/system\/\S+)\n([\s\S]*?)(?=^# \/etc\/|$(?![\s\S]))/gm,
    )) {
      paths.push(join(units, basename(at)));
      await writeFile(paths.at(-1)!, content);
    }
    return paths;
  }

  test.skipIf(!requires("systemd"))("are sound, whatever the file is called", async () => {
    for (const path of [file, plain]) {
      const units = await unitsOf(path);
      expect(units).toHaveLength(2);
      const { status, stdout, stderr } = spawnSync("systemd-analyze", ["verify", ...units], {
        encoding: "utf8",
      });
      expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
    }
  });

  test("say what the file says", async () => {
    const [service, timer] = await Promise.all((await unitsOf(file)).map((path) => readFile(path, "utf8")));
    expect(service).toContain("\nTimeoutStartSec=18240\n");
    expect(service).toContain("\nTimeoutStopSec=180\n");
    expect(service).toContain("\nRestartPreventExitStatus=1 2 4 5 8 9 130 143\n");
    expect(service).toContain('\nRequiresMountsFor="/data/my archive" ');
    expect(service).toContain('a $$HOME %%n \\\\%%t \\"q\\" it\'s/job;#.yaml"\n');
    expect(timer).toContain("\nOnCalendar=*-*-01,15 02:30:00 Europe/Berlin\n");
    expect(timer).toContain("\nRandomizedDelaySec=2\n");
    expect(timer).toContain("\nPersistent=true\n");
    const [bare, often] = await Promise.all((await unitsOf(plain)).map((path) => readFile(path, "utf8")));
    expect(bare).toContain("\nTimeoutStartSec=infinity\n");
    expect(bare).not.toContain("EnvironmentFile");
    expect(often).toContain("\nPersistent=false\n");
  });
});

describe.skipIf(!requires("flock"))("the line of a crontab", () => {
  /** The command of the last line as cron gives it to the shell: what is behind a bare % would be its input. */
  function commandOf(text: string): string {
    const fields = text.trimEnd().split("\n").at(-1)!;
    const command = /^(?:\S+ ){5}(.*)$/.exec(fields)![1]!;
    let given = "";
    for (let index = 0; index < command.length; index++) {
      if (command[index] === "%") throw new Error("a bare % ends the command");
      if (command[index] === "\\") {
        if (command[index + 1] !== "%") given += "\\";
        given += command[++index] ?? "";
      } else given += command[index];
    }
    return given;
  }

  /** The same with a program of ours, and the variables' file where it can be. */
  async function tryLine(path: string, script: string): Promise<string> {
    const program = join(folder, "stand-in.cjs");
    await writeFile(program, script);
    const variables = join(folder, "job.env");
    await writeFile(variables, "GATEWAY_URL='a b'\n");
    return commandOf(printed("cron", path, "--set", "recheck=1d"))
      .replace(/\/etc\/runvault\/\w+\.env/, variables)
      .replaceAll(builtMain, program);
  }

  test("gives a shell the words that were meant, after a short wait", async () => {
    const line = await tryLine(file, `${notifier} console.log(process.env.GATEWAY_URL);`);
    const { status, stdout, stderr } = spawnSync("/bin/sh", ["-c", line], {
      encoding: "utf8",
      env: { PATH: process.env.PATH },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const [words, variable] = stdout.trimEnd().split("\n");
    expect(JSON.parse(words!)).toEqual(["run", file, "--set", "recheck=1d", "-q"]);
    expect(variable).toBe("a b");
  });

  test("ends with what the execution ends with, and with 6 while another runs", async () => {
    const line = await tryLine(
      plain,
      "console.log('on'); process.stdin.resume(); process.stdin.on('end', () => process.exit(8));",
    );
    const first = spawn("/bin/sh", ["-c", line], { stdio: ["pipe", "pipe", "inherit"] });
    await once(first.stdout, "data");
    const { status } = spawnSync("/bin/sh", ["-c", line], { encoding: "utf8", input: "" });
    expect(status).toBe(6);
    first.stdin.end();
    expect(await once(first, "exit")).toEqual([8, null]);
  });

  test("passes over what is missing to none", async () => {
    const line = (await tryLine(file, notifier)).replace("job.env", "none.env");
    expect(spawnSync("/bin/sh", ["-c", line]).status).toBe(2);
  });
});

describe("a CronJob", () => {
  test.skipIf(!requires("kubernetes-validate"))("fits the schemas of Kubernetes", async () => {
    for (const path of [file, plain]) {
      const manifest = join(folder, "cronjob.yaml");
      await writeFile(manifest, printed("kubernetes", path));
      const script =
        "import sys, yaml, kubernetes_validate as k; k.validate(yaml.safe_load(open(sys.argv[1])), '1.31', strict=True)";
      const { status, stderr } = spawnSync("python3", ["-c", script, manifest], { encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    }
  });

  test("says what the file says", () => {
    const { metadata, spec } = parse(printed("kubernetes", file, "--set", "after.verify=deep"));
    const job = spec.jobTemplate.spec;
    const pod = job.template.spec;
    const [container] = pod.containers;
    expect(metadata.name).toBe("nightly");
    expect(spec).toMatchObject({
      schedule: "30 2 1,15 * 1-5",
      timeZone: "Europe/Berlin",
      concurrencyPolicy: "Forbid",
      startingDeadlineSeconds: 72_000,
    });
    expect(job.activeDeadlineSeconds).toBe(5 * 3600 + 120 + 120 + 2);
    expect(job.podFailurePolicy.rules[1].onExitCodes.values).toEqual([1, 2, 4, 5, 8, 9]);
    expect(pod.terminationGracePeriodSeconds).toBe(180);
    expect(container.command).toEqual([
      "runvault",
      "run",
      "/etc/runvault/job.yaml",
      "--set",
      "after.verify=deep",
    ]);
    expect(container.env.map(({ name }: { name: string }) => name)).toEqual([
      "GATEWAY_URL",
      "ARCHIVE",
      "ALERT_URL",
    ]);
    // each once, relative paths from where the file then is; exports of one folder together
    const mounts = container.volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
    expect(mounts).toEqual([
      "/etc/runvault",
      "/etc/runvault/secret",
      "/data/my archive",
      "/etc/runvault/sc ratch",
      "/etc/runvault/out",
      "/var/lib/node_exporter",
    ]);
    const volumes = pod.volumes.map(({ name }: { name: string }) => name);
    expect(volumes).toEqual(container.volumeMounts.map(({ name }: { name: string }) => name));
  });

  test("never has what came from the environment", () => {
    const { stdout } = spawnSync(process.execPath, [builtMain, "schedule", "--print", "kubernetes", file], {
      env: { ...env, ARCHIVE: "/5ecret" },
      encoding: "utf8",
    });
    expect(stdout).not.toContain("5ecret");
    expect(stdout).toContain("# FILL IN: the folder that archive comes to, ${ARCHIVE:-/data/my archive}\n");
    expect(stdout).toContain('mountPath: "/FILL-IN/archive"');
  });
});

describe("a DAG of Airflow", () => {
  test.skipIf(!requires("python"))("is Python, with the words that were meant", async () => {
    const dag = join(folder, "dag.py");
    await writeFile(dag, printed("airflow", file));
    const script =
      "import ast, json, sys; tree = ast.parse(open(sys.argv[1]).read()); print(json.dumps({n.targets[0].id: ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id in ('COMMAND', 'VARIABLES')}))";
    const { stdout, stderr } = spawnSync("python3", ["-c", script, dag], { encoding: "utf8" });
    expect(stderr).toBe("");
    const { COMMAND, VARIABLES } = JSON.parse(stdout);
    expect(COMMAND.slice(1)).toEqual([builtMain, "run", file]);
    expect(VARIABLES).toEqual(["GATEWAY_URL", "ALERT_URL"]);
  });

  test.skipIf(!requires("airflow"))("is taken by Airflow, and ends by exit status", async () => {
    const dag = join(folder, "dag.py");
    await writeFile(dag, printed("airflow", plain));
    const { status, stdout, stderr } = spawnSync("python3", ["-c", airflowTrial, dag], {
      encoding: "utf8",
      env: { ...process.env, AIRFLOW_HOME: join(folder, "airflow"), AIRFLOW__CORE__LOAD_EXAMPLES: "False" },
    });
    expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" });
    expect(JSON.parse(stdout.trimEnd().split("\n").at(-1)!)).toEqual({
      dag: "runvault-plain",
      catchup: false,
      runs: 1,
      retries: 3,
      ends: {
        ...{ 0: "done", 1: "AirflowFailException", 2: "AirflowFailException", 3: "RuntimeError" },
        ...{ 4: "AirflowFailException", 5: "AirflowFailException", 6: "RuntimeError", 7: "RuntimeError" },
        ...{ 8: "AirflowFailException", 9: "AirflowFailException" },
      },
    });
  });
});

/** Loads a DAG, and calls its task with programs that end with each status. */
const airflowTrial = `
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("dag", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
dag = module.runvault_job()
task = dag.get_task("run")
class Any: pass
ti, run = Any(), Any()
ti.try_number, run.logical_date, run.run_type = 1, None, "manual"
module.get_current_context = lambda: {"ti": ti, "dag_run": run}
ends = {}
for status in range(10):
    module.COMMAND[:] = [sys.executable, "-c", f"raise SystemExit({status})"]
    try:
        task.python_callable()
        ends[str(status)] = "done"
    except Exception as error:
        ends[str(status)] = type(error).__name__
print(json.dumps({"dag": dag.dag_id, "catchup": dag.catchup, "runs": dag.max_active_runs, "retries": task.retries, "ends": ends}))
`;

describe("what can't be printed is refused", () => {
  const refused =
    (content: string, ...args: string[]) =>
    async () => {
      const path = join(folder, "refused.yaml");
      await writeFile(path, content);
      const run = spawnSync(process.execPath, [builtMain, "schedule", "--print", "cron", path, ...args], {
        env: { ...env, CRON: "15 2 * * *" },
        encoding: "utf8",
      });
      expect({ status: run.status, stdout: run.stdout }).toEqual({ status: 2, stdout: "" });
      return run.stderr;
    };
  const head = "version: 1\nname: x\ngateway: { url: http://h/api/v1 }\narchive: v\nruns: {}\n";

  test("a file without a schedule", async () => {
    expect(await refused(head)()).toContain("the job file has no schedule");
  });
  test("a schedule from the environment", async () => {
    const schedule = 'schedule: { cron: "${CRON}", timezone: Etc/UTC }\n';
    expect(await refused(head + schedule)()).toContain(
      "schedule comes from the environment, which is never printed",
    );
  });
  test("a file with errors", async () => {
    expect(await refused(`${head}nope: 1\n`)()).toContain("refused.yaml:6:1: there is no key nope");
  });
  test("two files", async () => {
    expect(await refused(head, file)()).toContain("--print takes one job file");
  });
});
