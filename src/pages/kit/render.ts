/** Components to text, on the server. */
import { renderToString } from "preact-render-to-string";
import type { Element } from "./html.ts";

export function documentOf(page: Element): string {
  return `<!doctype html>\n${renderToString(page)}`;
}
