import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { HttpSession } from "../http/http-session.ts";

/** The path of a next page. It must have the same origin, because it is sent secret headers. */
export function nextTarget(session: HttpSession, address: string, from: string, place: ErrorPlace): string {
  const { origin } = session.address;
  const base = origin + from;
  const hint = "Nothing was sent there; report it to the gateway's operator.";
  if (!URL.canParse(address, base)) {
    throw new RunvaultError("refused", "the gateway's next-page link is not a valid URL", {
      place,
      status: 200,
      hint,
    });
  }
  const target = new URL(address, base);
  if (target.origin !== origin || target.username !== "" || target.password !== "") {
    throw new RunvaultError("refused", `the gateway's next-page link has another origin, ${target.origin}`, {
      place,
      status: 200,
      hint,
    });
  }
  return target.pathname + target.search;
}
