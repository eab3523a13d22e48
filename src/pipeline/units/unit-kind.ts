/** Other schedulers that a job's schedule is printed for. */
export const unitKinds = ["systemd", "cron", "kubernetes", "airflow"] as const;
export type UnitKind = (typeof unitKinds)[number];
