import { setFlagsFromString } from "node:v8";

/**
 * For a process whose memory is mostly outside V8's heap, in buffers that come and go. V8 collects its whole heap for
 * every 64 MiB of them, which takes more of the processor than what fills them; with this they count as the heap does,
 * and it is collected when all of it has grown. Costs a hundred megabytes or so of memory.
 */
export function countBuffersWithHeap(): void {
  // another V8 may not know the flag, and would say so on standard error
  if (process.versions.v8.startsWith("13."))
    setFlagsFromString("--external-memory-accounted-in-global-limit");
}
