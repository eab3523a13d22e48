import { withinReach } from "../http/error-reach.ts";
import type { HttpSession } from "../http/http-session.ts";
import type { RestRequest } from "../profile/profile.ts";
import type { ProfileTransport } from "../profile-document-source.ts";
import { restCall } from "./rest-call.ts";
import type { RestClient } from "./rest-client.ts";

/** Media types of documents. */
const json = ["application/json"];

/** How documents are asked for by routes below a base. */
export function askRest(
  session: HttpSession,
  client: RestClient,
  base: string,
): ProfileTransport<RestRequest>["ask"] {
  return async (request, values, place, signal, read) => {
    using scope = session.scope(signal);
    const call = restCall(base, request, values, json);
    const here = { ...place, url: session.address.label + call.path };
    try {
      return await read(await client.document(call, { place: here, signal: scope.signal }), here);
    } catch (thrown) {
      throw withinReach(thrown, place);
    }
  };
}
