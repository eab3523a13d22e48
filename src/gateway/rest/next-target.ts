import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { HttpSession } from "../http/http-session.ts";

/** The path of a next page from the origin on, which stays: it is sent headers that are a secret. */
export function nextTarget(session: HttpSession, address: string, from: string, place: ErrorPlace): string {
  const { origin } = session.address;
  const base = origin + from;
  const hint = "Nothing was sent there; report it to the gateway's operator.";
  if (!URL.canParse(address, base)) {
    throw new RunvaultError("refused", "the gateway names a next page at an address that is none", {
      place,
      status: 200,
      hint,
    });
  }
  const target = new URL(address, base);
  if (target.origin !== origin || target.username !== "" || target.password !== "") {
    throw new RunvaultError("refused", `the gateway names a next page at another origin, ${target.origin}`, {
      place,
      status: 200,
      hint,
    });
  }
  return target.pathname + target.search;
}
