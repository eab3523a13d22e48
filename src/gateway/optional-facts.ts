import type { ErrorCode } from "../model/error.ts";
import type { FactsRequest, StorageFacts } from "../model/source.ts";
import type { Notices } from "./notices.ts";
import { nullOnAbsence, nullOnRefusal } from "./optional-answer.ts";
import { absentCodes } from "./request-checks.ts";

const noFacts: readonly ErrorCode[] = [...absentCodes, "resource_not_found"];

/**
 * The requested storage facts; null if the gateway has none or refuses them, which is reported. Throws errors of a scan
 * for row hashes: the caller may ask for less, and needs the reason.
 */
export async function optionalFacts(
  asked: FactsRequest,
  notices: Notices,
  ask: (asked: FactsRequest) => Promise<StorageFacts>,
): Promise<StorageFacts | null> {
  const facts = () => factsOrWithoutHash(asked, ask);
  return asked.withHash === true
    ? await nullOnAbsence(noFacts, facts)
    : await nullOnRefusal("storage facts", noFacts, notices, facts);
}

/**
 * The requested facts. A gateway without row checksums refuses their parameters; then the request is repeated without
 * them.
 */
async function factsOrWithoutHash(
  asked: FactsRequest,
  ask: (asked: FactsRequest) => Promise<StorageFacts>,
): Promise<StorageFacts> {
  const { withHash, table } = asked;
  if (withHash !== true && table === undefined) return await ask(asked);
  const facts = await nullOnAbsence(["refused"], () => ask(asked));
  if (facts !== null) return facts;
  const all = await ask({});
  return table === undefined ? all : new Map([...all].filter(([name]) => name === table));
}
