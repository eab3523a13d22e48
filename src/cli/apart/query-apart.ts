// The separate process in which `runvault query` and `runvault shell` run statements: one may exceed its memory limit
// or crash.
import { keepCompiled } from "../process/compile-cache.ts";

keepCompiled(process.env);
// after the compile cache is on, so that the rest is loaded from it
const { answerRequests } = await import("./answer-requests.ts");
await answerRequests();
