import { Html, html, nothing } from "./html.ts";
import { style } from "./style.ts";

export interface Page {
  readonly title: string;
  /** Run card and figures. */
  readonly head: Html;
  readonly sections: readonly { readonly id: string; readonly title: string; readonly body: Html }[];
  /** When and by what it was made: the only line of a page that varies. */
  readonly made: string;
}

/** The page's own policy: no scripts, requests, fonts or external images. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/** A complete page in one file without dependencies. */
export function pageText({ title, head, sections, made }: Page): string {
  const links = sections.map(
    ({ id, title: name }) => html`<a href="#${id}">${name.replace(/, %$/, "")}</a>\n`,
  );
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${Html.of(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${Html.of(style)}</style>
</head>
<body>
<main>
<header>
${head}</header>
${sections.length === 0 ? nothing : html`<nav aria-label="Sections">\n${links}</nav>\n`}${sections.map(
  ({ id, title: name, body }) => html`<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${name}</h2>
${body}</section>
`,
)}<p class="made">${made}</p>
</main>
</body>
</html>
`.text;
}
