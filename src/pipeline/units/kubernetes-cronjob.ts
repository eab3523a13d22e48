import { basename, dirname } from "node:path";
import { visible } from "../../model/text/visible-text.ts";
import { cronText } from "./cron-text.ts";
import {
  again,
  comments,
  headLines,
  latestSeconds,
  notTriedAgain,
  runWords,
  stopSeconds,
  type UnitPlan,
  variableLines,
} from "./unit-plan.ts";

/** Where the job file is in a container: its relative paths start here. */
export const podFolder = "/etc/runvault";
const jobKey = "job.yaml";

/** A CronJob for the job, in a container with everything that the file names at the paths that it names. */
export function kubernetesCronjob(plan: UnitPlan): string {
  const { name, schedule, seconds, times, file } = plan;
  const mounts = mountsOf(plan);
  const longest = seconds.longest === null ? null : seconds.longest + seconds.jitter;
  const final = notTriedAgain.join(", ");
  return [
    comments(
      ...headLines("kubernetes", plan),
      "",
      "FILL IN where marked below: the image, the volume claims, the memory. And create:",
      `  kubectl create configmap ${name}-job --from-file=${jobKey}=FILE`,
      ...(file.variables.length === 0
        ? []
        : [
            `  kubectl create secret generic ${name}-env --from-env-file=ENVFILE   # with these, NAME=value:`,
            ...variableLines(plan).map((line) => `    ${line}`),
          ]),
      ...(mounts.secrets.length === 0
        ? []
        : [
            `  kubectl create secret generic ${name}-files \\`,
            ...mounts.secrets.map(({ key }) => `    --from-file=${key}=FILE`),
          ]),
      ...(file.job.notify.command === undefined
        ? []
        : ["The program of notify.command must be in the image, at the same path."]),
    ).trimEnd(),
    "apiVersion: batch/v1",
    "kind: CronJob",
    "metadata:",
    `  name: ${text(name)}`,
    "  labels: { app.kubernetes.io/name: runvault }",
    "spec:",
    `  schedule: ${text(cronText(times))} # the file's: ${schedule.cron}`,
    `  timeZone: ${text(schedule.timezone)}`,
    "  concurrencyPolicy: Forbid # a start that falls into a running execution is skipped",
    `  startingDeadlineSeconds: ${latestSeconds(plan)} # makes up for a missed start, once, up to this late`,
    "  successfulJobsHistoryLimit: 3",
    "  failedJobsHistoryLimit: 3",
    "  jobTemplate:",
    "    spec:",
    `      backoffLimit: ${again.times}`,
    ...(longest === null
      ? []
      : [
          `      activeDeadlineSeconds: ${longest} # jitter, deadline, grace and a margin, including retries`,
        ]),
    "      podFailurePolicy:",
    "        rules:",
    "          # the node goes away: another attempt, which does not count",
    "          - action: Ignore",
    "            onPodConditions:",
    "              - { type: DisruptionTarget, status: 'True' }",
    "          # a retry does not help (1, 2, 4, 5, 9), or only at the next start (deadline: 8). Others, such as",
    "          # unreachable, locked or disk full (3, 6, 7), are retried up to backoffLimit",
    "          - action: FailJob",
    `            onExitCodes: { containerName: runvault, operator: In, values: [${final}] }`,
    "      template:",
    "        metadata:",
    "          labels: { app.kubernetes.io/name: runvault }",
    "        spec:",
    "          restartPolicy: Never",
    `          terminationGracePeriodSeconds: ${stopSeconds(plan)} # the file's grace and a margin`,
    "          automountServiceAccountToken: false",
    "          # FILL IN: the user who owns the archive",
    "          securityContext: { runAsNonRoot: true, runAsUser: 10001, runAsGroup: 10001, fsGroup: 10001 }",
    ...jitterLines(plan),
    "          containers:",
    "            - name: runvault",
    "              image: FILL-IN/runvault:FILL-IN",
    `              command: [${["runvault", ...runWords(`${podFolder}/${jobKey}`, plan)].map(argument).join(", ")}]`,
    ...environmentLines(plan),
    "              # FILL IN: what the archive's runs need",
    "              resources: { requests: { cpu: 500m, memory: 512Mi }, limits: { memory: 2Gi } }",
    "              volumeMounts:",
    `                - { name: job, mountPath: ${podFolder}, readOnly: true }`,
    ...mounts.secrets
      .filter(({ folder }) => folder !== podFolder)
      .filter(({ folder }, index, all) => all.findIndex((one) => one.folder === folder) === index)
      .map(
        ({ folder, volume }) =>
          `                - { name: ${volume}, mountPath: ${text(folder)}, readOnly: true }`,
      ),
    ...mounts.folders.flatMap(({ role, folder, words }) => [
      ...(words === null ? [] : [`                # FILL IN: ${words}`]),
      `                - { name: ${role}, mountPath: ${text(folder)} }`,
    ]),
    "          volumes:",
    "            - name: job",
    ...projectedLines(
      plan,
      mounts.secrets.filter(({ folder }) => folder === podFolder),
      true,
    ),
    ...[...new Set(mounts.secrets.map(({ volume }) => volume))]
      .filter((volume) => volume !== "job")
      .flatMap((volume) => [
        `            - name: ${volume}`,
        ...projectedLines(
          plan,
          mounts.secrets.filter((secret) => secret.volume === volume),
          false,
        ),
      ]),
    ...mounts.folders.flatMap(({ role, what }) => [
      `            # FILL IN: the claim of ${what}`,
      `            - { name: ${role}, persistentVolumeClaim: { claimName: ${text(`${name}-${role}`)} } }`,
    ]),
    "",
  ].join("\n");
}

/** A random wait first, because Kubernetes has no jitter. */
function jitterLines({ seconds }: UnitPlan): readonly string[] {
  if (seconds.jitter === 0) return [];
  const wait = `process.on('SIGTERM', () => process.exit(143)); setTimeout(() => {}, Math.random() * ${seconds.jitter * 1000})`;
  return [
    "          initContainers:",
    "            - name: jitter # so that jobs do not all start at once",
    "              image: FILL-IN/runvault:FILL-IN",
    `              command: [node, -e, ${text(wait)}]`,
  ];
}

function environmentLines({ name, file }: UnitPlan): readonly string[] {
  if (file.variables.length === 0) return [];
  return [
    "              env:",
    ...file.variables.flatMap(({ name: variable, isNeeded }) => [
      `                - name: ${variable}`,
      "                  valueFrom:",
      `                    secretKeyRef: { name: ${text(`${name}-env`)}, key: ${variable}${isNeeded ? "" : ", optional: true"} }`,
    ]),
  ];
}

function projectedLines(
  { name }: UnitPlan,
  secrets: readonly SecretMount[],
  withJob: boolean,
): readonly string[] {
  return [
    "              projected:",
    "                sources:",
    ...(withJob
      ? [
          `                  - configMap: { name: ${text(`${name}-job`)}, items: [{ key: ${jobKey}, path: ${jobKey} }] }`,
        ]
      : []),
    ...secrets.map(
      ({ key, path }) =>
        `                  - secret: { name: ${text(`${name}-files`)}, items: [{ key: ${text(key)}, path: ${text(path)}, mode: 0440 }] }`,
    ),
  ];
}

interface SecretMount {
  readonly key: string;
  readonly folder: string;
  /** The file's name in the folder. */
  readonly path: string;
  readonly volume: string;
}

interface FolderMount {
  readonly role: string;
  readonly what: string;
  readonly folder: string;
  /** What to fill in; null if the folder is known. */
  readonly words: string | null;
}

function mountsOf({ file }: UnitPlan): {
  readonly secrets: readonly SecretMount[];
  readonly folders: readonly FolderMount[];
} {
  const { archive, scratch, gateway, after, metrics } = file.job;
  const { token, tls } = gateway;
  const hidden = (path: readonly (string | number)[]) => file.isFromEnvironment(...path);
  const secrets: SecretMount[] = [];
  const secret = (key: string, found: string | undefined, ...path: string[]) => {
    if (found === undefined) return;
    const folder = hidden(path) ? `/FILL-IN/${key}` : dirname(found);
    const first = secrets.find((one) => one.folder === folder);
    const volume = folder === podFolder ? "job" : (first?.volume ?? `secret-${key}`);
    secrets.push({ key, folder, volume, path: hidden(path) ? key : basename(found) });
  };
  secret("token", token?.kind === "file" ? token.file : undefined, "gateway", "token", "file");
  secret("ca", tls?.ca, "gateway", "tls", "ca");
  secret("cert", tls?.cert, "gateway", "tls", "cert");
  secret("key", tls?.key, "gateway", "tls", "key");
  secret("profile", gateway.profile, "gateway", "profile");

  const folders: FolderMount[] = [];
  const volume = (role: string, what: string, folder: string, path: readonly (string | number)[]) => {
    const isHidden = hidden(path);
    const target = isHidden ? `/FILL-IN/${role}` : folder;
    if (folders.some((one) => isWithin(target, one.folder))) return;
    const words = isHidden
      ? `the folder that ${path.join(".")} comes to, ${visible(file.written(...path) ?? "")}`
      : null;
    folders.push({ role, what, folder: target, words });
  };
  volume("archive", "the archive", archive, ["archive"]);
  if (scratch !== undefined) volume("scratch", "scratch, which outlives an attempt", scratch, ["scratch"]);
  // replacing by rename needs the parent folder
  if (after.reports !== undefined)
    volume("reports", "reports", after.reports.out, ["after", "reports", "out"]);
  for (const [index, { out }] of after.exports.entries()) {
    volume(`export-${index}`, "an export", dirname(out), ["after", "exports", index, "out"]);
  }
  if (metrics?.textfile !== undefined) {
    const what = "the metrics file, or a hostPath that node_exporter reads";
    volume("metrics", what, dirname(metrics.textfile), ["metrics", "textfile"]);
  }
  return { secrets, folders };
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

/** A text in YAML. */
function text(value: string): string {
  return JSON.stringify(value);
}

/** A command argument: Kubernetes expands $(NAME), and reads $$ as $. */
function argument(word: string): string {
  return text(word.replaceAll("$", "$$$$"));
}
