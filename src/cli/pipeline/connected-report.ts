import { byteText } from "../../model/text/byte-text.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import type { ConnectedJob } from "../../pipeline/connect/connect-job.ts";
import { countsText } from "./counts-text.ts";

/** The state of a job file's gateway, archive and targets, in lines like those of `jobSummary`. */
export function connectedLines({ gateway, archive, targets }: ConnectedJob): readonly string[] {
  const lines = [
    `gateway: ${gatewayText(gateway)}`,
    `archive: ${archiveText(archive, gateway)}`,
    ...targets.map(({ key, words }) => `${key}: ${words}`),
  ];
  return lines.map((line, index) => `${(index === 0 ? "found" : "").padEnd(8)}${line}`);
}

function gatewayText(gateway: ConnectedJob["gateway"]): string {
  if (gateway === null) return "did not list its runs";
  const { instances, runs, plans, latest } = gateway;
  const which = runs === 0 ? "" : ` (${countsText(plans)})`;
  const named = latest === null ? "" : `; latest is ${visible(latest)}`;
  return `${countText(instances, "instance")}; ${countText(runs, "run")} of this job${which}${named}`;
}

function archiveText(
  { isUsable, format, freeBytes }: ConnectedJob["archive"],
  gateway: ConnectedJob["gateway"],
): string {
  const what = !isUsable
    ? "cannot be used"
    : format === null
      ? "will be created"
      : `exists, format ${format}, and is writable`;
  const needed = gateway?.neededBytes ?? null;
  const parts = [
    what,
    ...(needed === null || needed === 0 ? [] : [`the pending runs need about ${byteText(needed)}`]),
    ...(freeBytes === null ? [] : [`${byteText(freeBytes)} free`]),
  ];
  return parts.join("; ");
}

/** The same as JSON. */
export function connectedJson({ gateway, archive, targets, exit }: ConnectedJob): object {
  return {
    exit,
    gateway,
    archive: { usable: archive.isUsable, format: archive.format, freeBytes: archive.freeBytes },
    targets: targets.map(({ key, words, finding }) => ({ key, ok: finding === null, words })),
  };
}
