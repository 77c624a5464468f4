/** A place whose content may be wider than itself. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Content, type Element, html } from "../html.ts";

/** Scrolls sideways where its table is too wide, and then by the keyboard, too. */
export function Scroll({ children }: { readonly children: Content }): Element {
  const place = useRef<HTMLDivElement>(null);
  // Before the browser paints, and after each change: a new child is another element.
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const measure = () => {
      if (element.scrollWidth > element.clientWidth) element.setAttribute("tabindex", "0");
      else element.removeAttribute("tabindex");
    };
    measure();
    const sizes = new ResizeObserver(measure);
    for (const one of [element, ...element.children]) sizes.observe(one);
    return () => sizes.disconnect();
  });
  return html`<div class="scroll" ref=${place}>${children}</div>`;
}
