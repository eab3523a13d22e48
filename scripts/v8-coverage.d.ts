// The part used here of a package that comes without types.
declare module "@bcoe/v8-coverage" {
  import type { Profiler } from "node:inspector";
  export function mergeScriptCovs(scripts: readonly Profiler.ScriptCoverage[]): Profiler.ScriptCoverage;
}
