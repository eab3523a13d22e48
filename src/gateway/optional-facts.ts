import type { ErrorCode } from "../model/error.ts";
import type { FactsRequest, StorageFacts } from "../model/source.ts";
import type { Notices } from "./notices.ts";
import { nullOnAbsence, nullOnRefusal } from "./optional-answer.ts";
import { absentCodes } from "./request-checks.ts";

const noFacts: readonly ErrorCode[] = [...absentCodes, "resource_not_found"];

/**
 * The storage facts asked for; null where the gateway has none, or refuses them, which is told. What it says of a scan
 * for row hashes is thrown: the caller may ask for less of it, and needs to hear why there is none.
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
 * The facts asked for. A gateway that is older than row checksums refuses the parameters of such a request: then they
 * are asked for without, and have none.
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
