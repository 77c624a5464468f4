/** The template tag of all components. Values are escaped by the renderer, on the server as in the browser. */
import type { ComponentChildren, VNode } from "preact";

export { html } from "htm/preact";
/** Anything that may stand between two tags. */
export type Content = ComponentChildren;
export type Element = VNode;
