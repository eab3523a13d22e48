/** Colours of the light theme, which paper has too. Text and marks of text have a contrast of 4.5 : 1 or more. */
const light = `
--paper:#fbfaf8;--ink:#16181d;--muted:#5a5f69;--line:#e2dfd9;--accent:#1f57c3;--gain:#0a7350;--loss:#b02f2a;
--run-1:#1f57c3;--run-2:#a85a00;--run-3:#6d3fa8;--run-4:#0b7285;--run-5:#a3195b;--run-6:#5a5f69;--warn:#8a5a00;`;

const dark = `
--paper:#101216;--ink:#eceef2;--muted:#a0a7b2;--line:#2a2e36;--accent:#7fa8ff;--gain:#45bd91;--loss:#f2857f;
--run-1:#7fa8ff;--run-2:#f0a860;--run-3:#b99af5;--run-4:#5cc8dd;--run-5:#f08bb4;--run-6:#a0a7b2;--warn:#e0b45c;`;

const tints = [1, 2, 3, 4, 5]
  .map(
    (step) =>
      `.g${step}{background:color-mix(in srgb,var(--gain) ${step * 8 - 2}%,transparent)}.l${step}{background:color-mix(in srgb,var(--loss) ${step * 8 - 2}%,transparent)}`,
  )
  .join("\n");

const swatches = [1, 2, 3, 4, 5, 6].map((run) => `.run-${run}{background:var(--run-${run})}`).join("");

/** The style of the page. Its widest charts are 980 px; where they do not fit, the narrow ones replace them. */
export const style = `
:root{color-scheme:light dark;${light}}
@media (prefers-color-scheme:dark){:root{${dark}}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
font-variant-numeric:tabular-nums;font-feature-settings:"tnum"}
main{max-width:1028px;margin:0 auto;padding:40px 24px 64px;overflow-wrap:break-word}
h1{font-size:27px;line-height:1.25;margin:0 0 14px;font-weight:680;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:18px;line-height:1.3;margin:0 0 14px;font-weight:650}
h3{font-size:15px;margin:24px 0 8px;font-weight:650;overflow-wrap:anywhere}
section{margin:44px 0 0;padding:28px 0 0;border-top:1px solid var(--line)}
#figures{margin-top:24px;padding-top:0;border-top:0}
p{margin:0 0 10px}
a{color:var(--accent);text-decoration:none}
a:hover,a:focus-visible{text-decoration:underline}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
nav{margin:28px 0 0;font-size:14px;color:var(--muted);line-height:2}
nav a{margin-right:18px;white-space:nowrap}
.note,figcaption,.empty,.made{color:var(--muted);font-size:13px;line-height:1.5}
.note{margin:6px 0 0}
.empty{font-size:15px}
.gain{color:var(--gain)}.loss{color:var(--loss)}.none{color:var(--muted)}
.warning{border-left:3px solid var(--warn);padding:2px 0 2px 12px;font-weight:600}
.pill{display:inline-block;vertical-align:3px;border:1px solid currentColor;border-radius:99px;padding:1px 10px;font-size:12px;font-weight:600;
letter-spacing:0;white-space:nowrap}
.pill.good{color:var(--gain)}.pill.open{color:var(--accent)}.pill.bad{color:var(--loss)}
.unseen{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.swatch{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:7px}
${swatches}
.scroll{overflow-x:auto;max-width:100%;margin:0 0 6px;position:relative}
table{border-collapse:collapse;width:100%;font-size:14px;line-height:1.4}
caption{text-align:left;font-weight:600;padding:16px 0 6px;font-size:14px}
th,td{text-align:left;padding:6px 18px 6px 0;border-bottom:1px solid var(--line);vertical-align:baseline;font-weight:400}
th:last-child,td:last-child{padding-right:0}
thead th{color:var(--muted);font-size:12.5px;white-space:nowrap}
.n{text-align:right}
td,tbody th{white-space:nowrap}
.t,.card td{white-space:normal;overflow-wrap:anywhere;min-width:18ch}
.card:not(.one) td{min-width:13ch;font-size:13px;padding-right:12px}
.card:not(.one) tbody th{padding-right:14px}
.note+.scroll,.note+.list{margin-top:10px}
.figures,.facts{width:auto;min-width:min(100%,420px)}
.facts th{color:var(--muted);padding-right:32px}
.card tbody th{color:var(--muted);width:1%;padding-right:36px}
.card.one thead{display:none}
.card.one tr:first-child>*{border-top:1px solid var(--line)}
.of{display:block;color:var(--muted);font-size:12px;line-height:1.35}
.compared td,.compared th{padding-right:14px}
details.long{margin:16px 0 6px}
details.long>summary{font-weight:600;font-size:14px}
.verdict{margin:0 0 8px}
.trades{font-size:13px}
.trades th,.trades td{padding-right:13px}
.list{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));column-gap:44px;margin:0 0 8px}
.list div{display:flex;justify-content:space-between;align-items:baseline;gap:12px;padding:6px 0;border-bottom:1px solid var(--line);font-size:14px}
.list dt{color:var(--muted)}
.list dd{margin:0;text-align:right;white-space:nowrap}
.list .unit{color:var(--muted);font-size:12.5px}
.months{border-spacing:3px;border-collapse:separate;width:100%}
.months th,.months td{border:0;padding:0;text-align:right}
.months tbody th{text-align:left;padding-right:10px;color:var(--muted)}
.months thead th{padding:0 8px 2px}
.months thead th:first-child{padding-left:0;text-align:left}
.tint,.months .none{display:block;padding:4px 8px;border-radius:3px;white-space:nowrap}
${tints}
.eight{display:grid;grid-template-columns:repeat(8,minmax(0,1fr));margin:0;border-top:1px solid var(--line);border-bottom:1px solid var(--line)}
.eight div{padding:14px 12px 14px 0;min-width:0}
.eight dt{color:var(--muted);font-size:13px;line-height:1.3;min-height:17px}
.eight dd{margin:4px 0 0}
.eight .value{display:block;font-size:21px;font-weight:640;line-height:1.35;letter-spacing:-.01em;white-space:nowrap}
.eight .value.long{font-size:16px;line-height:1.77}.eight.several .value.long{font-size:14px;line-height:1.54}
.eight .before,.eight .reason{display:block;color:var(--muted);font-size:12.5px;line-height:1.35}
.eight.several .value{font-size:16px}
.eight.several .value.long{line-height:1.54}
.eight .value.longest,.eight.several .value.longest{font-size:12px;line-height:1.8;white-space:normal;overflow-wrap:anywhere}
.chart{margin:0 0 26px}
.chart svg{display:block;width:100%;height:auto;overflow:visible}
.chart .narrow{display:none}
figcaption{margin:8px 0 0}
details{margin:6px 0 0}
summary{color:var(--accent);font-size:13px;cursor:pointer;width:max-content;max-width:100%}
code{font:12px/1.4 ui-monospace,"SF Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere}
.made{margin:48px 0 0;padding:14px 0 0;border-top:1px solid var(--line)}
@media screen and (max-width:1027px){
.chart .wide{display:none}.chart .narrow{display:block;max-width:620px}
.eight{grid-template-columns:repeat(4,minmax(0,1fr))}
.list{grid-template-columns:repeat(2,minmax(0,1fr))}
}
@media screen and (max-width:600px){
main{padding:24px 16px 48px}
h1{font-size:23px}
.eight{grid-template-columns:repeat(2,minmax(0,1fr))}
.eight div{padding:11px 10px 11px 0}
section{margin-top:34px;padding-top:24px}
.figures{width:100%}
.list{grid-template-columns:minmax(0,1fr)}
.card tbody th{padding-right:16px}
}
@media print{
:root{color-scheme:light;${light}--paper:#fff}
@page{size:A4;margin:14mm 12mm}
body{font-size:10pt;background:#fff}
.note,figcaption,.made{font-size:8.5pt}
main{max-width:none;padding:0}
nav{display:none}
section{margin-top:22px;padding-top:16px}
h2,h3,caption{break-after:avoid}
.chart,tr,.eight,.warning{break-inside:avoid}
.scroll{overflow:visible}
thead{display:table-header-group}
table{font-size:8.5pt}
.months{font-size:7.5pt}
.tint,.months .none{padding:3px 3px}
.months thead th{padding:0 3px 2px}
th,td{padding:4px 8px 4px 0}
td,tbody th{white-space:normal}
.n{white-space:nowrap}
.t,.card:not(.one) td{min-width:0}
main:has(.card:not(.one)) table{font-size:6.5pt}
main:has(.card:not(.one)) :is(th,td){padding-right:4px}
main:has(.card:not(.one)) :is(.tint,.none){padding:3px 1px}
.compared .n,main:has(.card:not(.one)) thead th{white-space:normal}
.of{font-size:6pt}
.trades{font-size:7pt}
.trades th,.trades td{padding-right:5px}
.list{column-gap:24px}
.list div{font-size:9pt;padding:3px 0}
.chart details{display:none}
.eight{grid-template-columns:repeat(4,1fr)}
.pill,.tint,.swatch,.chart svg{-webkit-print-color-adjust:exact;print-color-adjust:exact}
a{color:inherit}
}
`;
