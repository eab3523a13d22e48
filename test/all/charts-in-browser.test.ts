import { type Browser, chromium as launcher, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { plainFrame } from "../../src/report/charts/drawing/frame.ts";
import { chromium, requires } from "../fixtures/command/requirement.ts";
import { chartSamples } from "../fixtures/report/chart-samples.ts";

const colours = ["ink", "muted", "line", "accent", "gain", "loss", "paper"] as const;
const runs = ["run-1", "run-2", "run-3", "run-4", "run-5", "run-6"] as const;

/** A text as the browser lays it out, px of its drawing; its colour and what is behind it, as red, green and blue. */
interface ShownText {
  readonly text: string;
  readonly size: number;
  readonly colour: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

interface ShownAxis {
  readonly labels: readonly string[];
}

interface ShownChart {
  readonly name: string;
  readonly width: number;
  readonly height: number;
  readonly texts: readonly ShownText[];
  readonly axes: readonly ShownAxis[];
  readonly markColours: readonly string[];
}

describe.skipIf(!requires("chromium"))("charts in a browser", () => {
  let browser: Browser;
  const shown = new Map<string, ShownChart[]>();
  const messages: string[] = [];
  const asked: string[] = [];

  beforeAll(async () => {
    browser = await launcher.launch({ executablePath: chromium, args: ["--no-sandbox"] });
    const drawn: [string, { wide: string; narrow: string }][] = [];
    for (const [name, make] of Object.entries(chartSamples)) {
      const chart = await make();
      if ("reason" in chart) throw new Error(`${name}: ${chart.reason}`);
      drawn.push([name, chart]);
    }
    for (const width of ["wide", "narrow"] as const) {
      const page = await browser.newPage({ viewport: { width: width === "wide" ? 1120 : 390, height: 900 } });
      page.on("console", (message) => messages.push(message.text()));
      page.on("pageerror", (error) => messages.push(error.message));
      page.on("request", (request) => asked.push(request.url()));
      await page.setContent(pageOf(drawn.map(([name, chart]) => [name, chart[width]])));
      shown.set(width, await look(page));
      await page.close();
    }
  });

  afterAll(async () => {
    await browser?.close();
  });

  test("say nothing on the console and ask for nothing", () => {
    expect(messages).toEqual([]);
    expect(asked).toEqual([]);
  });

  describe.each(["wide", "narrow"])("%s", (width) => {
    test.each(Object.keys(chartSamples))("%s: no text is small, cut off, or over another", (name) => {
      const chart = shown.get(width)!.find((each) => each.name === name)!;
      expect(chart.texts.length).toBeGreaterThan(0);
      for (const each of chart.texts) {
        expect(each.size, each.text).toBeGreaterThanOrEqual(10);
        expect(each.left, each.text).toBeGreaterThanOrEqual(0);
        expect(each.top, each.text).toBeGreaterThanOrEqual(0);
        expect(each.right, each.text).toBeLessThanOrEqual(chart.width);
        expect(each.bottom, each.text).toBeLessThanOrEqual(chart.height);
      }
      const overlapping = chart.texts.flatMap((one, index) =>
        chart.texts
          .slice(index + 1)
          .filter((other) => overlap(one, other))
          .map((other) => [one.text, other.text]),
      );
      expect(overlapping).toEqual([]);
    });

    test.each(Object.keys(chartSamples))("%s: no axis has a label twice", (name) => {
      const chart = shown.get(width)!.find((each) => each.name === name)!;
      for (const { labels } of chart.axes) expect(new Set(labels).size, labels.join()).toBe(labels.length);
    });

    test.each(Object.keys(chartSamples))("%s: text has a contrast of 4.5, marks one of 3", (name) => {
      const chart = shown.get(width)!.find((each) => each.name === name)!;
      const paper = rgbOf(plainFrame.paint("paper"));
      const line = rgbOf(plainFrame.paint("line")).join();
      for (const { text, colour } of chart.texts) {
        expect(contrast(numbersIn(colour), paper), text).toBeGreaterThanOrEqual(4.5);
      }
      for (const colour of chart.markColours) {
        const numbers = numbersIn(colour);
        // hairlines are not what is to be read, and edges of the colour of paper part marks from each other
        if (numbers.join() === line || numbers.join() === paper.join()) continue;
        expect(contrast(numbers, paper), colour).toBeGreaterThanOrEqual(3);
      }
    });
  });
});

function pageOf(charts: readonly (readonly [string, string])[]): string {
  const variables = [...colours, ...runs].map((name) => `--${name}:${plainFrame.paint(name)}`).join(";");
  const sections = charts.map(([name, svg]) => `<section data-name="${name}">${svg}</section>`).join("\n");
  return `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><style>
:root{${variables}} body{margin:0;background:var(--paper);font:15px/1.45 system-ui,sans-serif} svg{display:block}
</style>${sections}`;
}

/** What the browser shows of each chart. */
async function look(page: Page): Promise<ShownChart[]> {
  // runs in the page
  return (await page.evaluate(`[...document.querySelectorAll("section")].map((section) => {
    const svg = section.querySelector("svg");
    const frame = svg.getBoundingClientRect();
    const box = (element) => {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      return { left: left - frame.left, right: right - frame.left, top: top - frame.top, bottom: bottom - frame.top };
    };
    const words = (element) => [...element.childNodes]
      .filter((node) => node.nodeName !== "title")
      .map((node) => node.textContent).join("\\n");
    const marks = [...svg.querySelectorAll(".role-mark path, .role-mark line")]
      .filter((mark) => getComputedStyle(mark).fillOpacity !== "0");
    return {
      name: section.dataset.name,
      width: frame.width,
      height: frame.height,
      texts: [...svg.querySelectorAll("text")].map((element) => {
        const style = getComputedStyle(element);
        return { text: words(element), size: parseFloat(style.fontSize), colour: style.fill, ...box(element) };
      }),
      axes: [...svg.querySelectorAll(".role-axis-label")].map((group) => ({
        labels: [...group.querySelectorAll("text")].map(words),
      })),
      markColours: [...new Set(marks.flatMap((mark) => {
        const { fill, stroke } = getComputedStyle(mark);
        return [fill, stroke].filter((colour) => colour !== "none");
      }))],
    };
  })`)) as ShownChart[];
}

/** Whether two boxes share more than the half pixel that rounding may make. */
function overlap(one: ShownText, other: ShownText): boolean {
  const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
  return across > 0.5 && down > 0.5;
}

function numbersIn(colour: string): number[] {
  return (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
}

function rgbOf(hex: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

/** As WCAG 2.2 defines it. */
function contrast(one: readonly number[], other: readonly number[]): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(rgb: readonly number[]): number {
  const [red, green, blue] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
