import { candlesSection } from "./candles-section.ts";
import { conventionsSection } from "./conventions-section.ts";
import { distributionSection } from "./distribution-section.ts";
import { equitySection } from "./equity-section.ts";
import { eventsSection } from "./events-section.ts";
import { executionSection } from "./execution-section.ts";
import { exposureSection } from "./exposure-section.ts";
import { factorsSection } from "./factors-section.ts";
import { monthlySection } from "./monthly-section.ts";
import type { PageSection } from "./page-section.ts";
import { provenanceSection } from "./provenance-section.ts";
import { reconciliationSection } from "./reconciliation-section.ts";
import { rollingSection } from "./rolling-section.ts";
import { tradesSection } from "./trades-section.ts";

/** The sections of the page below the eight figures, in order. */
export const pageSections: readonly PageSection[] = [
  equitySection,
  monthlySection,
  distributionSection,
  rollingSection,
  exposureSection,
  tradesSection,
  executionSection,
  factorsSection,
  candlesSection,
  eventsSection,
  reconciliationSection,
  conventionsSection,
  provenanceSection,
];
