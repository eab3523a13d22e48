import type { TableName } from "../../model/profile/table.ts";
import type { Window } from "../plan/held-window.ts";
import { windowText } from "./rungs.ts";

/** What proofs rest on beside their kind, as certificates say it; docs/proof.md explains each. */
export const grounds = {
  emptyEnds: (window: Window) => `outer ends empty on ${windowText(window)}`,
  largerAnswers: "larger answers than its last timestamp takes",
  singleRow: "a last timestamp of one row, and no answer that a cap ended",
  pages: "pages that end behind the same rows as its answers",
  noRows: (window: Window) => `no rows on ${windowText(window)}`,
  countedNone: "storage facts that count none",
  routeGaveRows: "its route, which gave rows before",
  countedNoneInRun: "storage facts that count no row of the run",
  saidEmpty: (table: TableName) => `the operator's word that it holds no rows (--empty ${table})`,
} as const;

/** What stays unknown where a gateway dropped rows before they could come here: told with the proof, for good. */
export const unseen = {
  between: (window: Window) => `what came and went in ${windowText(window)} is not known`,
  isSaid: (ground: string) => ground.startsWith("what came and went in "),
} as const;

/** The same of rows that earlier jobs archived. */
export const heldGrounds = {
  streamed: "rows archived before were streamed once more, and compared",
  hash: "rows archived before have the gateway's row checksum",
  counts: "counts alone for rows archived while the run went on",
} as const;
