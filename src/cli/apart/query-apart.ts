// Run by `runvault query` and `runvault shell` as a process of its own: a statement may take more memory than it is told to,
// and may crash.
import { keepCompiled } from "../process/compile-cache.ts";
import { withoutLanguages } from "./without-languages.ts";

keepCompiled(process.env);
// behind the cache, from which all else is to come
await withoutLanguages(() => import("zod"));
const { answerRequests } = await import("./answer-requests.ts");
await answerRequests();
