import { executionSection } from "../execution/execution-section.ts";
import { factorsSection } from "../factors/factors-section.ts";
import { drawdownsSection } from "./drawdowns-section.ts";
import { monthlySection } from "./monthly-section.ts";
import { performanceSection } from "./performance-section.ts";
import { rollingSection } from "./rolling-section.ts";
import type { Section } from "./section.ts";
import { tradesSection } from "./trades-section.ts";

/** All that is told of a run, in order. */
export const sections: readonly Section[] = [
  performanceSection,
  drawdownsSection,
  monthlySection,
  rollingSection,
  tradesSection,
  executionSection,
  factorsSection,
];
