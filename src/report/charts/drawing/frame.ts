/** The light theme's colours by their part in a chart. A page sets each as a CSS variable: `--ink`. */
const lightColours = {
  ink: "#16181d",
  muted: "#5a5f69",
  line: "#e2dfd9",
  accent: "#1f57c3",
  gain: "#0a7350",
  loss: "#b02f2a",
  paper: "#fbfaf8",
  "run-1": "#1f57c3",
  "run-2": "#a85a00",
  "run-3": "#6d3fa8",
  "run-4": "#0b7285",
  "run-5": "#a3195b",
  "run-6": "#5a5f69",
};

export type Colour = keyof typeof lightColours;

/** The frame that a chart is drawn into. */
export interface Frame {
  /** Of the whole drawing, px. */
  readonly width: number;
  readonly isNarrow: boolean;
  /** Of labels, px. */
  readonly fontSize: number;
  readonly fontFamily: string;
  /** The text for a colour in the drawing. */
  paint(colour: Colour): string;
}

const wide = { width: 980, isNarrow: false, fontSize: 12 };
const narrow = { width: 330, isNarrow: true, fontSize: 11 };
const themed = { fontFamily: "inherit", paint: (colour: Colour) => `var(--${colour})` };

export const wideFrame: Frame = { ...wide, ...themed };
export const narrowFrame: Frame = { ...narrow, ...themed };
/** For drawings outside a page, which have no CSS variables for colours. */
export const plainFrame: Frame = {
  ...wide,
  fontFamily: "system-ui, sans-serif",
  paint: (colour) => lightColours[colour],
};
