/** The style sheet of the report page. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d8dee6;
  --paper: #fff; --good: #1a7f4b; --bad: #b42318; --deep: #0b4f8a; --faint: #eef2f6; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6ebf1; --soft: #9aa7b5; --line: #333d49;
  --paper: #151a20; --good: #4cc38a; --bad: #ff8a7a; --deep: #6cb2f0; --faint: #1f262e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1100px; padding: 1.5rem 1rem 3rem; font: 15px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0; } .soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); }
code { font: .85em ui-monospace, monospace; overflow-wrap: anywhere; }
.totals { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; }
.totals div { flex: 1 1 6.5rem; border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem; }
  .totals span { white-space: nowrap; } .totals b { display: block; font-size: 1.35rem; font-variant-numeric:
  tabular-nums; }
.wide { overflow-x: auto; } svg { display: block; width: 100%; height: auto; } svg.line { height: 11rem;
  overflow: visible; } svg.key { display: inline-block; width: 4.5rem; height: .75rem; margin: 0 .3rem; } .edge
  { text-align: right; } .ends { display: flex; justify-content: space-between; gap: 1rem; font-size: .85rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; } th, td { text-align: left; padding: .3rem
  .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; } th { color: var(--soft);
  font-weight: 600; white-space: nowrap; } td.number, th.number { text-align: right; font-variant-numeric:
  tabular-nums; white-space: nowrap; } td { overflow-wrap: anywhere; } td.month { white-space: nowrap; }
  td.number + td:not(.number) { padding-left: .5rem; }
li { overflow-wrap: anywhere; }
details { margin-top: .5rem; } summary { cursor: pointer; }
.map { display: grid; grid-template-columns: minmax(6rem, 16rem) 1fr; gap: 4px .6rem; align-items: center;
  font-size: .8rem; line-height: 1.2; } .map span { overflow-wrap: anywhere; } .map .ends { grid-column: 2;
  font-size: 1em; } .map svg { height: 14px; }
@media (max-width: 600px) {
  .totals { display: grid; grid-template-columns: 1fr 1fr; } .totals div:last-child:nth-child(odd) {
    grid-column: 1 / -1; }
  .map { grid-template-columns: minmax(0, 1fr); } .map .ends { grid-column: 1; } .map > span { margin-top:
    .3rem; } td, th { padding-right: .4rem; }
  .stack, .stack tbody { display: block; } .stack tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding:
    .4rem 0; border-bottom: 1px solid var(--line); } .stack tr:has(th) { display: none; }
  .stack tr td { padding: 0; border: 0; } .stack td.whole { flex-basis: 100%; } .stack td[data-name]::before {
    content: attr(data-name) " "; color: var(--soft); }
}
@media print { body { max-width: none; padding: 0; font-size: 11px; } details::details-content {
  content-visibility: visible; } h2 { break-after: avoid; } tr { break-inside: avoid; } }
`;
