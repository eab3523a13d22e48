/** Other schedulers for which a schedule can be printed. */
export const unitKinds = ["systemd", "cron", "kubernetes", "airflow"] as const;
export type UnitKind = (typeof unitKinds)[number];
