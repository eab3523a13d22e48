import { parse, type Spec, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import { visibleLines } from "../../../model/text/visible-text.ts";

/** The room around a plot, px. */
export interface Margin {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export interface SvgSize {
  /** Of the plot, px: of all its parts together. */
  readonly plotWidth: number;
  readonly plotHeight: number;
  readonly margin: Margin;
}

/**
 * A spec as an `<svg>` element that can be in a page with others: it has no ids, and its bytes depend only on the spec.
 * A mark's `description` becomes its `<title>`. Sizes are those given, because text cannot be measured here.
 * @param label what a screen reader says in place of the drawing
 */
export async function renderSvg(spec: TopLevelSpec, size: SvgSize, label: string): Promise<string> {
  const { margin, plotWidth, plotHeight } = size;
  const compiled: Spec = {
    ...compile(spec).spec,
    autosize: "none",
    padding: margin,
    width: plotWidth,
    height: plotHeight,
  };
  const view = new View(parse(compiled), { renderer: "none" });
  try {
    const width = plotWidth + margin.left + margin.right;
    const height = plotHeight + margin.top + margin.bottom;
    return tidy(
      await view.toSVG(),
      `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`,
      label,
    );
  } finally {
    view.finalize();
  }
}

/**
 * Searches only for tags: vega escapes `<`, `>` and `"` in text and attributes, so no text of the data looks like one.
 * Characters that hide or turn text, which vega leaves unchanged, are shown as escapes, as elsewhere on a page.
 */
function tidy(svg: string, size: string, label: string): string {
  return visibleLines(svg)
    .replace(
      /^<svg[^>]*>/,
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escaped(visibleLines(label))}" style="font-variant-numeric:tabular-nums">`,
    )
    .replace(/<path class="foreground"[^>]*\/>/g, "")
    .replace(/<path class="background"(?![^>]*(?:fill|stroke)=)[^>]*\/>/g, "")
    .replace(/<[a-z]+ [^>]*>/g, tidyTag)
    .replace(/<g class="[^"]*"\/>/g, "")
    .replace(/<g class="(mark-(?:symbol|rect|rule|text)[^"]*)"([^>]*)>(.*?)<\/g>/gs, sharedAttributes);
}

const shareable = [
  ...["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray"],
  ...["font-family", "font-size", "font-weight", "text-anchor"],
].map((name) => new RegExp(` ${name}="[^"]*"`));

/** Moves attributes that all marks of a group share to the group, which makes the SVG much smaller. */
function sharedAttributes(group: string, name: string, rest: string, content: string): string {
  const marks = content.match(/<(?:path|line|text) [^>]*>/g) ?? [];
  if (marks.length < 2) return group;
  const shared = shareable.flatMap((attribute) => {
    const first = attribute.exec(marks[0]!)?.[0];
    return first !== undefined && marks.every((mark) => mark.includes(first)) ? [first] : [];
  });
  const own = content.replace(/<(?:path|line|text) [^>]*>/g, (mark) =>
    shared.reduce((text, attribute) => text.replace(attribute, ""), mark),
  );
  return `<g class="${name}"${rest}${shared.join("")}>${own}</g>`;
}

function tidyTag(tag: string, offset: number): string {
  if (offset === 0) return tag;
  const title = / aria-label="([^"]*)"/.exec(tag)?.[1];
  const isEmpty = tag.endsWith("/>");
  const bare = tag
    .replace(/ (?:(?:aria-[a-z]+|role)="[^"]*"|opacity="1"|stroke-dasharray="")/g, "")
    .replace(/ (?:d|transform|x|y|x2|y2)="[^"]*"/g, (attribute) => attribute.replace(longNumber, shortened));
  if (title === undefined || tag.startsWith("<g ")) return bare;
  const name = /^<([a-z]+)/.exec(tag)![1]!;
  return isEmpty
    ? `${bare.slice(0, -2)}><title>${title}</title></${name}>`
    : `${bare}<title>${title}</title>`;
}

const longNumber = /-?\d*\.\d{2,}(?:e[+-]?\d+)?|-?\d+e[+-]?\d+/g;

/** Rounds to tenths of a pixel, which nobody can see. */
function shortened(number: string): string {
  return String(Number(Number(number).toFixed(1)));
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
