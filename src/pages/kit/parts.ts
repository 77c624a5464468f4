/** Parts of pages that show something. Each is a component, and a function that checks its properties when called. */
import { type Content, type Element, html } from "./html.ts";

interface NoticeProps {
  /** `danger` is announced at once, as an error of the whole page. */
  readonly kind?: "info" | "success" | "warning" | "danger";
  readonly title?: string;
  readonly children: Content;
}

export function Notice({ kind = "info", title, children }: NoticeProps): Element {
  const role = kind === "danger" ? "alert" : "status";
  return html`<div class=${`notice ${kind}`} role=${role}>
    ${title === undefined ? null : html`<h2>${title}</h2>`}${children}
  </div>`;
}

interface CardProps {
  /** Id of the heading, which names the section. */
  readonly id: string;
  readonly title: string;
  readonly children: Content;
}

export function Card({ id, title, children }: CardProps): Element {
  return html`<section class="card" aria-labelledby=${id}><h2 id=${id}>${title}</h2>${children}</section>`;
}

/** Names and values. */
export function Facts({ facts }: { readonly facts: readonly (readonly [name: string, value: Content])[] }): Element {
  return html`<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

interface TableProps {
  /** Says what the table lists. */
  readonly caption: string;
  /** An empty name is a column of buttons. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Content[])[];
  /** Shown in place of a table without rows. */
  readonly empty: string;
}

/** On a narrow screen each row is a block, whose cells are named. */
export function Table({ caption, columns, rows, empty }: TableProps): Element {
  if (rows.length === 0) return html`<p class="muted">${empty}</p>`;
  const heads = columns.map((name) =>
    name === "" ? html`<th scope="col"><span class="hidden">Actions</span></th>` : html`<th scope="col">${name}</th>`,
  );
  const cell = (value: Content, at: number) => {
    const name = columns[at] ?? "";
    return name === "" ? html`<td>${value}</td>` : html`<td data-label=${name}>${value}</td>`;
  };
  return html`<div class="scroll"><table class="rows"><caption>${caption}</caption>
    <thead><tr>${heads}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map(cell)}</tr>`)}</tbody></table></div>`;
}

/** A moment for people, in UTC; scripts of later pages may show it in the zone of the browser. */
export function Moment({ ms }: { readonly ms: number }): Element {
  const iso = new Date(ms).toISOString();
  return html`<time dateTime=${iso}>${`${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`}</time>`;
}

interface PictureProps {
  /** Rows of squares, true for dark ones. */
  readonly squares: readonly (readonly boolean[])[];
  readonly label: string;
}

/** A QR code; the ground is light in dark pages, too, as scanners require. */
export function QrCode({ squares, label }: PictureProps): Element {
  const path = squares.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : []))).join("");
  const size = squares.length;
  return html`<svg class="qr" role="img" aria-label=${label} viewBox=${`-2 -2 ${size + 4} ${size + 4}`}
    shape-rendering="crispEdges"><path d=${path} fill="#000" /></svg>`;
}
