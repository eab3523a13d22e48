import type { Field } from "vega-lite/types_unstable/channeldef.js";
import type { LayerSpec, UnitSpec } from "vega-lite/types_unstable/spec/index.js";

/** One layer of a plot, with the data it draws. */
export type Layer = LayerSpec<Field> | UnitSpec<Field>;
