/** Files of the values that are shown: links, which the browser saves as they come. */
import { type Element, html } from "../kit/html.ts";
import { pathOf } from "./hub.ts";
import type { Loaded } from "./loaded.ts";
import { TEXTS } from "./texts.ts";

const FORMATS = [
  { words: "CSV", format: "csv" },
  { words: "XLSX", format: "xlsx" },
  { words: "JSON", format: "json" },
];

export function Exports({ loaded }: { readonly loaded: Loaded }): Element {
  const links = FORMATS.map(({ words, format }) => {
    const href = pathOf("/data/export", { ...loaded.question, Format: format });
    return html`<a class="button plain small" href=${href} download>${words}</a>`;
  });
  return html`<div class="buttons" role="group" aria-label=${TEXTS.export}>
    <span>${TEXTS.export}:</span>${links}
  </div>`;
}
