import { RunvaultError } from "../model/error.ts";

/** The cause of an error: an HTML page with a success status, as proxies and maintenance pages send. */
export class HtmlPage extends Error {}

/** Whether an error comes from such a page rather than from a gateway's answer. */
export function isHtmlPage(thrown: unknown): boolean {
  for (let error = thrown; error instanceof RunvaultError; error = error.cause) {
    if (error.cause instanceof HtmlPage) return true;
  }
  return false;
}
