/** The one stylesheet of all pages: no font, no image and no script of another address. */

export const LIGHT: Palette = {
  ground: "#f5f6f8",
  surface: "#ffffff",
  text: "#1a1e24",
  muted: "#535c68",
  line: "#d9dde3",
  edge: "#7d8794",
  accent: "#0a5a9c",
  onAccent: "#ffffff",
  danger: "#a8201a",
  onDanger: "#ffffff",
  dangerGround: "#fdeeed",
  success: "#176034",
  successGround: "#e9f6ee",
  warning: "#744600",
  warningGround: "#fff4dc",
};

export const DARK: Palette = {
  ground: "#13161a",
  surface: "#1c2026",
  text: "#e7eaee",
  muted: "#abb3be",
  line: "#343b45",
  edge: "#7f8a98",
  accent: "#82bdf7",
  onAccent: "#0c1826",
  danger: "#ff9d94",
  onDanger: "#2b0907",
  dangerGround: "#3a1a19",
  success: "#86d7a2",
  successGround: "#15301f",
  warning: "#f2c877",
  warningGround: "#352a12",
};

/** Text, and the ground that it stands on: 4.5 to 1 at least. */
export const TEXT_PAIRS: readonly (readonly [keyof Palette, keyof Palette])[] = [
  ["text", "ground"],
  ["text", "surface"],
  ["muted", "ground"],
  ["muted", "surface"],
  ["accent", "ground"],
  ["accent", "surface"],
  ["onAccent", "accent"],
  ["danger", "surface"],
  ["danger", "ground"],
  ["onDanger", "danger"],
  ["text", "dangerGround"],
  ["danger", "dangerGround"],
  ["text", "successGround"],
  ["success", "successGround"],
  ["text", "warningGround"],
  ["warning", "warningGround"],
];

/** Outlines that show where a control is, and focus: 3 to 1 at least. */
export const OUTLINE_PAIRS: readonly (readonly [keyof Palette, keyof Palette])[] = [
  ["edge", "ground"],
  ["edge", "surface"],
  ["accent", "surface"],
  ["accent", "ground"],
];

export const STYLESHEET = `
:root { color-scheme: light dark; ${variablesOf(LIGHT)} }
@media (prefers-color-scheme: dark) { :root { ${variablesOf(DARK)} } }
*, *::before, *::after { box-sizing: border-box; }
html { font: 100%/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
body { margin: 0; background: var(--ground); color: var(--text); overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: .15em; }
:focus-visible, [type^="date"]:focus-within { outline: 3px solid var(--accent); outline-offset: 2px;
  border-radius: 4px; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.15rem; line-height: 1.3; margin: 0 0 .75rem; }
p { margin: 0 0 .75rem; }
code { font: .95em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: .5rem; top: .5rem; background: var(--surface); padding: .5rem .75rem; z-index: 1; }
.bar { background: var(--surface); border-bottom: 1px solid var(--line); }
.bar > div { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: center; padding: .6rem 1rem;
  max-width: 64rem; margin: 0 auto; }
.brand { font-weight: 650; color: var(--text); text-decoration: none; }
.bar nav { flex: 1 1 auto; }
.bar ul, .tabs ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; margin: 0; padding: 0; }
.bar nav a, .tabs a { display: inline-block; padding: .35rem 0; text-decoration: none; }
.bar nav a:hover, .tabs a:hover { text-decoration: underline; }
[aria-current="page"] { color: var(--text); font-weight: 600; box-shadow: inset 0 -2px var(--accent); }
.tabs { border-bottom: 1px solid var(--line); margin-bottom: 1.25rem; }
.who { display: flex; flex-wrap: wrap; gap: .25rem .75rem; align-items: center; margin-left: auto; }
.who span { color: var(--muted); }
main { display: block; max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
main.narrow { max-width: 28rem; padding-top: 3rem; }
main.full { max-width: none; padding-top: 1rem; }
body:has(main.full) .bar > div { max-width: none; }
main:focus { outline: none; }
.card { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 1.25rem;
  margin-bottom: 1.25rem; }
.card > :last-child { margin-bottom: 0; }
form { margin: 0; }
.field { margin-bottom: 1.1rem; max-width: 28rem; }
.field > label, .field > .label, legend { display: block; font-weight: 600; margin-bottom: .25rem; }
legend { padding: 0; }
fieldset { border: 0; margin: 0 0 1.1rem; padding: 0; }
legend { padding: 0; }
.hint { color: var(--muted); font-size: .925rem; margin: 0 0 .3rem; }
.fault { color: var(--danger); font-weight: 600; font-size: .925rem; margin: 0 0 .3rem; }
input, select, textarea { font: inherit; color: var(--text); background: var(--surface); width: 100%;
  padding: .5rem .65rem; border: 1px solid var(--edge); border-radius: 6px; min-height: 2.75rem; }
[aria-invalid="true"] { border: 2px solid var(--danger); }
.check { display: flex; gap: .6rem; align-items: flex-start; margin-bottom: .5rem; }
.check input { width: 1.25rem; height: 1.25rem; min-height: 0; flex: none; margin: .15rem 0 0; padding: 0;
  accent-color: var(--accent); }
.check .hint { margin: 0; }
button, .button { font: inherit; font-weight: 600; display: inline-block; cursor: pointer; border-radius: 6px;
  min-height: 2.75rem; padding: .5rem 1.1rem; border: 1px solid var(--accent); background: var(--accent);
  color: var(--on-accent); text-decoration: none; }
button:hover, .button:hover { filter: brightness(1.08); }
button.plain, .button.plain { background: transparent; color: var(--accent); border-color: var(--edge); }
button.danger { background: transparent; color: var(--danger); border-color: var(--danger); }
button.small, .button.small { min-height: 2.25rem; padding: .25rem .75rem; font-size: .925rem; }
.actions { display: flex; flex-wrap: wrap; gap: .6rem 1rem; align-items: center; margin-top: 1.25rem; }
.buttons { display: flex; flex-wrap: wrap; gap: .4rem .6rem; }
.deed { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; justify-content: space-between;
  border-top: 1px solid var(--line); padding: .75rem 0; }
.deed p { margin: 0; flex: 1 1 16rem; }
.notice { border: 1px solid var(--line); border-left: 5px solid var(--accent); border-radius: 6px;
  background: var(--surface); padding: .75rem 1rem; margin-bottom: 1.25rem; }
.notice > :last-child { margin-bottom: 0; }
.notice h2 { font-size: 1rem; margin-bottom: .35rem; }
.notice ul { margin: 0; padding-left: 1.2rem; }
.notice.success { background: var(--success-ground); border-left-color: var(--success); }
.notice.warning { background: var(--warning-ground); border-left-color: var(--warning); }
.notice.danger { background: var(--danger-ground); border-left-color: var(--danger); }
.notice.danger a { color: var(--danger); }
.banner { background: var(--warning-ground); border-bottom: 3px solid var(--warning); }
.banner > div { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; max-width: 64rem; margin: 0 auto;
  padding: .6rem 1rem; }
.banner p { margin: 0; flex: 1 1 16rem; }
.banner button { background: transparent; color: var(--warning); border-color: var(--warning); }
.scroll { overflow-x: auto; margin-bottom: .75rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--muted); padding-bottom: .5rem; }
th, td { text-align: left; vertical-align: top; padding: .55rem .75rem .55rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
th { color: var(--muted); font-weight: 600; font-size: .925rem; }
tr:last-child td { border-bottom: 0; }
dl.facts { display: grid; grid-template-columns: minmax(8rem, auto) 1fr; gap: .45rem 1.25rem; margin: 0 0 1rem; }
dl.facts dt { color: var(--muted); }
dl.facts dd { margin: 0; }
.secret { display: block; max-width: 28rem; background: var(--ground); border: 1px dashed var(--edge);
  border-radius: 6px; padding: .6rem .75rem; margin-bottom: .75rem; user-select: all; }
.codes { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)); gap: .4rem 1rem; list-style:
  none; margin: 0 0 1rem; padding: 0; }
.qr { display: block; background: #fff; border-radius: 6px; width: 13rem; height: 13rem; max-width: 100%;
  margin-bottom: .75rem; }
.muted { color: var(--muted); }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (max-width: 40rem) {
  .who { margin-left: 0; }
  main { padding-top: 1.25rem; }
  main.narrow { padding-top: 1.5rem; }
  dl.facts { grid-template-columns: 1fr; gap: 0; }
  dl.facts dd { margin-bottom: .6rem; }
  table.rows thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table.rows tr { display: block; border-bottom: 1px solid var(--line); padding: .5rem 0; }
  table.rows tr:last-child { border-bottom: 0; }
  table.rows td { display: block; border: 0; padding: .15rem 0; }
  table.rows td[data-label]::before { content: attr(data-label) ": "; color: var(--muted); }
}
@media print { .bar, .tabs, .actions, .banner, button { display: none; } }
`;

/** `--on-accent: #ffffff; …` */
function variablesOf(palette: Palette): string {
  return Object.entries(palette)
    .map(([name, colour]) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}: ${colour};`)
    .join(" ");
}

// The colours of all pages, by day and by night; a test computes the contrast of each pair.

interface Palette {
  readonly ground: string;
  readonly surface: string;
  readonly text: string;
  readonly muted: string;
  readonly line: string;
  /** Outlines of fields and buttons. */
  readonly edge: string;
  readonly accent: string;
  readonly onAccent: string;
  readonly danger: string;
  readonly onDanger: string;
  readonly dangerGround: string;
  readonly success: string;
  readonly successGround: string;
  readonly warning: string;
  readonly warningGround: string;
}

/** Contrast of two colours by WCAG 2: 1 to 21. */
export function contrastOf(one: string, other: string): number {
  const [light = 0, dark = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminanceOf(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
