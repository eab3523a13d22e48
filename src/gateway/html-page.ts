import { RunvaultError } from "../model/error.ts";

/** As the cause of an error: a page of HTML came with a status of success, as proxies and maintenance pages send it. */
export class HtmlPage extends Error {}

/** Whether an error is about such a page, and not about what a gateway answered. */
export function isHtmlPage(thrown: unknown): boolean {
  for (let error = thrown; error instanceof RunvaultError; error = error.cause) {
    if (error.cause instanceof HtmlPage) return true;
  }
  return false;
}
