import { expect, test } from "vitest";
import { html, nothing } from "../../src/report/page/html.ts";

test("text in a page is shown as it is, and is no markup, in elements and in attributes alike", () => {
  const name = `"><img src=x onerror='alert(1)'>&amp;`;
  const text = "&quot;&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&amp;amp;";
  const made = html`<p title="${name}">${[name, html`<b>${name}</b>`, 7, nothing]}</p>`;
  expect(made.text).toBe(`<p title="${text}">${text}<b>${text}</b>7</p>`);
});
