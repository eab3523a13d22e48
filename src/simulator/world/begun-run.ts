import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { RunvaultError } from "../../model/error.ts";
import { privateFolder } from "../../model/make-folder.ts";
import { makeTemporaryFolder } from "../../model/temporary-folder.ts";
import type { Nanoseconds } from "../../model/time.ts";
import { barMicros } from "../bars/bars.ts";
import type { SimulatorOptions } from "../simulator-options.ts";
import { renderRun } from "../store/render-run.ts";
import { runIdOf } from "./run-numbers.ts";
import { planOfBegunRun, type World, type WorldRun } from "./world.ts";

/** A run that an action started, after the world was rendered. */
export interface BegunRun {
  readonly at: Nanoseconds;
  readonly runId: string;
  /** Its rows, which the clock reveals. */
  readonly rendered: Promise<WorldRun>;
}

/** Renders started runs into a temporary folder, because they depend on when they were requested. */
export interface BegunRuns extends AsyncDisposable {
  /** Begins a run of an instance, both counted from 0. The same arguments give the same rows. */
  begin(instance: number, run: number, at: Nanoseconds): BegunRun;
}

export function begunRuns(world: World, options: SimulatorOptions): BegunRuns {
  const ending = new AbortController();
  const rendering = new Set<Promise<unknown>>();
  let folder: Promise<string> | undefined;

  const render = async (instance: number, run: number, startMicros: number): Promise<WorldRun> => {
    folder ??= makeTemporaryFolder("runs");
    const target = join(await folder, `${instance}-${run}`);
    await mkdir(target, privateFolder);
    const plan = await planOfBegunRun(options, world.instruments, instance, run, startMicros);
    const done = await renderRun(plan, target, () => ending.signal.throwIfAborted());
    return { ...done, growing: true, folder: target };
  };

  return {
    begin(instance, run, at) {
      const startMicros = Number(at / 1000n);
      const rendered = render(instance, run, startMicros);
      // readers of the run see a failure, but there may be no reader
      const settled = rendered.then(
        () => undefined,
        () => undefined,
      );
      rendering.add(settled);
      void settled.then(() => rendering.delete(settled));
      return { at, runId: runIdOf(options, startMicros + barMicros, run), rendered };
    },
    async [Symbol.asyncDispose]() {
      ending.abort(new RunvaultError("interrupted", "the simulator was closed"));
      await Promise.all(rendering);
      if (folder !== undefined) await rm(await folder, { recursive: true, force: true });
    },
  };
}
