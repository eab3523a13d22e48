import { Option } from "commander";
import { z } from "zod";

/** `--set KEY=VALUE` of commands that read job files; repeatable. */
export function setOption(): Option {
  return new Option(
    "--set <key=value>",
    "replace a value of the job file, its key with dots, such as gateway.budget.rps=5; repeatable",
  ).argParser((text: string, before: string[] | undefined) => [...(before ?? []), text]);
}

export const setShape = { set: z.array(z.string()).default([]) };
