import { airflowDag } from "./airflow-dag.ts";
import { crontab } from "./crontab.ts";
import { kubernetesCronjob } from "./kubernetes-cronjob.ts";
import { systemdUnits } from "./systemd-units.ts";
import type { UnitKind } from "./unit-kind.ts";
import type { UnitPlan } from "./unit-plan.ts";

/** A job's schedule for another scheduler, as text for its configuration. */
export function printUnits(kind: UnitKind, plan: UnitPlan): string {
  switch (kind) {
    case "systemd":
      return systemdUnits(plan);
    case "cron":
      return crontab(plan);
    case "kubernetes":
      return kubernetesCronjob(plan);
    case "airflow":
      return airflowDag(plan);
  }
}
