import type { TableName } from "../../model/profile/table.ts";
import type { Window } from "../plan/held-window.ts";
import { windowText } from "./rungs.ts";

/** Further grounds of proofs, as stored in certificates; docs/proof.md explains each. */
export const grounds = {
  emptyEnds: (window: Window) => `outer ends empty on ${windowText(window)}`,
  largerAnswers: "larger answers than its last timestamp takes",
  singleRow: "a last timestamp of one row, and no answer that a cap ended",
  heldWithMore: "an answer that held its last timestamp with more before it than a cap leaves room for",
  parts: "parts of its last timestamp by a filter whose values the gateway lists",
  pages: "pages that end behind the same rows as its answers",
  cameWhole: "the table as it came whole, for its route takes no time bounds",
  endedPages: "pages that the gateway ended itself",
  pagesByOffset: "pages by offset, each of which began with the last row of the one before",
  pagesByNumber: "pages by number, read again with another page size",
  arrivalOrder: "rows of one instant in the order of their arrival, which was the same twice",
  noRows: (window: Window) => `no rows on ${windowText(window)}`,
  noRowsWhole: "no rows from a route that takes no time bounds",
  countedNone: "storage facts that count none",
  routeGaveRows: "its route, which gave rows before",
  countedNoneInRun: "storage facts that count no row of the run",
  saidEmpty: (table: TableName) => `the operator's word that it holds no rows (--empty ${table})`,
} as const;

/** What stays unknown if a gateway dropped rows before they could be fetched: reported with the proof forever. */
export const unseen = {
  between: (window: Window) => `what came and went in ${windowText(window)} is not known`,
  isSaid: (ground: string) => ground.startsWith("what came and went in "),
} as const;

/** The same for rows that earlier jobs archived. */
export const heldGrounds = {
  streamed: "rows archived before were streamed once more, and compared",
  hash: "rows archived before have the gateway's row checksum",
  counts: "counts alone for rows archived while the run went on",
} as const;
