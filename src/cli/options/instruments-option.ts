import { Option } from "commander";

/** The file with facts about instruments that rows do not have. */
export function instrumentsOption(): Option {
  return new Option(
    "--instruments <file>",
    "YAML file with the currency, multiplier, kind and bars of instruments (default: linear, multiplier 1, the equity's currency)",
  ).env("RUNVAULT_INSTRUMENTS");
}
