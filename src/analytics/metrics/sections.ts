import { executionSection } from "../execution/execution-section.ts";
import { factorsSection } from "../factors/factors-section.ts";
import { drawdownsSection } from "../performance/drawdowns-section.ts";
import { monthlySection } from "../performance/monthly-section.ts";
import { performanceSection } from "../performance/performance-section.ts";
import { rollingSection } from "../performance/rolling-section.ts";
import { tradesSection } from "../performance/trades-section.ts";
import type { Section } from "../section/section.ts";

/** All sections, in order. */
export const sections: readonly Section[] = [
  performanceSection,
  drawdownsSection,
  monthlySection,
  rollingSection,
  tradesSection,
  executionSection,
  factorsSection,
];
