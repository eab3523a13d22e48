import { withinReach } from "../http/error-reach.ts";
import type { HttpSession } from "../http/http-session.ts";
import type { RestRequest } from "../profile/profile.ts";
import type { ProfileTransport } from "../profile-document-source.ts";
import { nextTarget } from "./next-target.ts";
import { restCall } from "./rest-call.ts";
import type { RestCall, RestClient } from "./rest-client.ts";

/** Media types of documents. */
const json = ["application/json"];

/** How documents are requested by routes below a base. */
export function askRest(
  session: HttpSession,
  client: RestClient,
  base: string,
): ProfileTransport<RestRequest>["ask"] {
  return async (request, values, place, signal, read) => {
    using scope = session.scope(signal);
    const call = restCall(base, request, values, json);
    const here = { ...place, url: session.address.label + call.path };
    const asked = (): RestCall => {
      if (values.address === undefined) return call;
      const path = nextTarget(session, values.address, session.address.basePath + call.path, here);
      return { method: "GET", path, isFromOrigin: true, accept: json };
    };
    try {
      const { bytes, headers } = await client.document(asked(), { place: here, signal: scope.signal });
      return await read(bytes, here, headers);
    } catch (thrown) {
      throw withinReach(thrown, place);
    }
  };
}
