/** A place whose content may be larger than itself. */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Content, type Element, html } from "../html.ts";

/** Of an element that scrolls where its content is too large, and then by the keyboard, too. */
export function useScrolling(): RefObject<HTMLDivElement | null> {
  const place = useRef<HTMLDivElement>(null);
  // Before the browser paints, and after each change: a new child is another element.
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const measure = () => {
      const { scrollWidth, clientWidth, scrollHeight, clientHeight } = element;
      if (scrollWidth > clientWidth || scrollHeight > clientHeight) element.setAttribute("tabindex", "0");
      else element.removeAttribute("tabindex");
    };
    measure();
    const sizes = new ResizeObserver(measure);
    for (const one of [element, ...element.children]) sizes.observe(one);
    return () => sizes.disconnect();
  });
  return place;
}

/** Scrolls sideways where its table is too wide. */
export function Scroll({ children }: { readonly children: Content }): Element {
  return html`<div class="scroll" ref=${useScrolling()}>${children}</div>`;
}
