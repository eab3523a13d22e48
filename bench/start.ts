// CPU seconds for starting commands, compared with an idle Node, in turns.
//   npm run bench -- start --archive DIR [--rounds 15]
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { median, timed } from "./timed.ts";

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== "start"),
  options: { archive: { type: "string" }, rounds: { type: "string", default: "15" } },
});
if (values.archive === undefined) throw new Error("--archive DIR is missing: any archive will do");
const main = `${process.execPath} ${join(import.meta.dirname, "..", "dist", "cli", "main.js")}`;
const bare = "node -e 0";
const commands: readonly (readonly [string, string])[] = [
  [bare, `${process.execPath} -e 0`],
  ["runvault --version", `${main} --version`],
  ["completion of a command", `${main} complete -- ex`],
  ["completion of an option", `${main} complete -- archive --f`],
  ['runvault query "SELECT 1"', `${main} query --archive ${values.archive} "SELECT 1"`],
  ["runvault runs", `${main} runs --archive ${values.archive}`],
];

const folder = await mkdtemp(join(tmpdir(), "runvault-bench-"));
try {
  const taken = new Map<string, number[]>(commands.map(([name]) => [name, []]));
  for (let round = -1; round < Number(values.rounds); round++) {
    for (const [name, command] of commands) {
      const { processorSeconds } = await timed(command, folder);
      // the first fills the compile cache
      if (round >= 0) taken.get(name)!.push(processorSeconds);
    }
  }
  const idle = median(taken.get(bare)!);
  for (const [name, seconds] of taken) {
    const least = Math.min(...seconds);
    process.stdout.write(
      `${name.padEnd(28)} ${median(seconds).toFixed(2)} s (least ${least.toFixed(2)}), above Node ${(median(seconds) - idle).toFixed(2)}\n`,
    );
  }
} finally {
  await rm(folder, { recursive: true });
}
