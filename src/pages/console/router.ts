/** The address says what is shown: it can be kept, and sent to others. */
import { useEffect, useState } from "preact/hooks";
import { type Content, type Element, html } from "../kit/html.ts";
import { BASE } from "./api.ts";

export interface Place {
  /** Below the console, as `/files/12`; `/` is its first page. */
  readonly path: string;
  readonly search: URLSearchParams;
}

const CHANGED = "headgate:address";
const HOME = `${BASE}/console`;

export function readPlace(): Place {
  const path = location.pathname.slice(HOME.length).replace(/\/+$/, "");
  return { path: path === "" ? "/" : path, search: new URLSearchParams(location.search) };
}

export function hrefOf(path: string, parameters: Readonly<Record<string, string | null | undefined>> = {}): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => (entry[1] ?? "") !== "");
  const query = new URLSearchParams(given);
  return `${HOME}${path === "/" ? "" : path}${query.size === 0 ? "" : `?${query}`}`;
}

/** `isReplaced`: no step of its own in the history, as for each letter of a search. */
export function go(href: string, isReplaced = false): void {
  if (href === location.pathname + location.search) return;
  history[isReplaced ? "replaceState" : "pushState"](null, "", href);
  dispatchEvent(new Event(CHANGED));
}

export function usePlace(): Place {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const read = () => setPlace(readPlace());
    for (const event of ["popstate", CHANGED]) addEventListener(event, read);
    return () => {
      for (const event of ["popstate", CHANGED]) removeEventListener(event, read);
    };
  }, []);
  return place;
}

interface LinkProps {
  readonly to: string;
  readonly class?: string;
  readonly title?: string;
  readonly current?: boolean;
  readonly children?: Content;
}

/** A link within the console, which needs no new page. */
export function Link({ to, children, current = false, ...more }: LinkProps): Element {
  const open = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${to} onClick=${open} aria-current=${current ? "page" : undefined} ...${more}>${children}</a>`;
}
