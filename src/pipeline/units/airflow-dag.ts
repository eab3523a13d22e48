import { cronText } from "./cron-text.ts";
import {
  again,
  comments,
  headLines,
  latestSeconds,
  runWords,
  stopSeconds,
  triedAgain,
  type UnitPlan,
  variableLines,
} from "./unit-plan.ts";

/** A DAG of one task, as a Python file; for Airflow 2.9 and later, and 3. */
export function airflowDag(plan: UnitPlan): string {
  const { name, schedule, seconds, times, program, file } = plan;
  const needed = file.variables.filter(({ isNeeded }) => isNeeded).map((variable) => variable.name);
  const attempts = again.times + 1;
  const longest =
    seconds.longest === null ? "None" : `timedelta(seconds=${seconds.longest + seconds.jitter})`;
  return `${comments(
    ...headLines("airflow", plan),
    "",
    "FILL IN, for the workers: COMMAND, with their paths of runvault and the job file; and in their environment",
    "the variables that the job file names:",
    ...(file.variables.length === 0 ? ["  none"] : variableLines(plan).map((line) => `  ${line}`)),
  )}from __future__ import annotations

import os
import random
import subprocess
import time
from datetime import datetime, timedelta, timezone

import pendulum
from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.timetables.trigger import CronTriggerTimetable

try:
    from airflow.sdk import dag, get_current_context, task
except ImportError:  # Airflow 2
    from airflow.decorators import dag, task
    from airflow.operators.python import get_current_context

COMMAND = ${list([...program, ...runWords(file.path, plan)])}
VARIABLES = ${list(needed)}
# a retry helps after these: out of reach, locked, disk full; and after a signal, which is below 0. After 8, the deadline, the next start goes on
TRIED_AGAIN = {${triedAgain.join(", ")}}
JITTER_SECONDS = ${seconds.jitter}
# how late a missed start is made up for: catch_up from the file, plus Airflow's own delay
LATEST_SECONDS = ${latestSeconds(plan)}
# how long an execution may take to end once it was asked to
STOP_SECONDS = ${stopSeconds(plan)}


@dag(
    dag_id=${text(`runvault-${name}`)},
    # the file's schedule: ${schedule.cron} in ${schedule.timezone}
    schedule=CronTriggerTimetable(${text(cronText(times))}, timezone=${text(schedule.timezone)}),
    start_date=pendulum.datetime(2024, 1, 1, tz=${text(schedule.timezone)}),
    catchup=False,
    max_active_runs=1,
    # all attempts together
    dagrun_timeout=${longest},
    tags=["runvault"],
)
def runvault_job():
    # ${attempts} attempts at most; those that cannot help are ended by AirflowFailException
    @task(
        task_id="run",
        retries=${again.times},
        retry_delay=timedelta(seconds=${again.pauseSeconds}),
        execution_timeout=${longest},
    )
    def run():
        context = get_current_context()
        first = context["ti"].try_number <= 1
        due = context["dag_run"].logical_date
        manual = "manual" in str(context["dag_run"].run_type)
        if first and due is not None and not manual:
            late = (datetime.now(timezone.utc) - due).total_seconds()
            if late > LATEST_SECONDS:
                raise AirflowSkipException(f"missed {late:.0f} s ago, too late to make up for")
        missing = [name for name in VARIABLES if not os.environ.get(name)]
        if missing:
            raise AirflowFailException(f"not set in the worker's environment: {', '.join(missing)}")
        if first and not manual:
            time.sleep(random.uniform(0, JITTER_SECONDS))
        process = subprocess.Popen(COMMAND)
        try:
            status = process.wait()
        except BaseException:
            # a timeout, or somebody stopped the task: what has begun may finish
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            raise
        if status in TRIED_AGAIN or status < 0:
            raise RuntimeError(f"runvault ended with {status} and is tried again")
        if status != 0:
            raise AirflowFailException(f"runvault ended with {status}")

    run()


runvault_job()
`;
}

function list(words: readonly string[]): string {
  return `[${words.map(text).join(", ")}]`;
}

/** A text in Python, which reads the escapes of JSON. */
function text(value: string): string {
  return JSON.stringify(value);
}
