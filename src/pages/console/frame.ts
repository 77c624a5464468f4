/** The head of every page, and the links between them. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Form } from "../kit/forms.ts";
import { type Content, type Element, html } from "../kit/html.ts";
import { nowMs, zoneOfBrowser } from "../kit/zone.ts";
import { BASE } from "./api.ts";
import type { Me } from "./contract.ts";
import { useLive } from "./live.ts";
import { hrefOf, Link, type Place } from "./router.ts";
import { TEXTS } from "./texts.ts";
import { count, offset } from "./words.ts";

interface FrameProps {
  readonly me: Me | null;
  readonly place: Place;
  readonly title: string;
  readonly zone: string;
  /** Null while it is not known. */
  readonly attention: number | null;
  readonly children: Content;
  setZone(zone: string): void;
}

const PAGES = [
  ["/", "attention"],
  ["/files", "files"],
  ["/readings", "readings"],
  ["/overview", "overview"],
  ["/drops", "drops"],
  ["/triggers", "triggers"],
  ["/playground", "playground"],
  ["/configuration", "configuration"],
  ["/migrations", "migrations"],
] as const;

export function Frame({ me, place, title, zone, attention, children, setZone }: FrameProps): Element {
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    setOpen(false);
    // The page that was loaded begins at its top; a later one is announced by its heading.
    if (!isFirst.current) {
      scrollTo(0, 0);
      main.current?.focus();
    }
    isFirst.current = false;
  }, [place.path]);
  useEffect(() => {
    const needs = attention === null || attention === 0 ? "" : `(${count(attention)}) `;
    document.title = `${needs}${title} · ${me?.gateway.name ?? "Headgate"}`;
  }, [title, attention, me]);
  return html`<a class="skip" href="#content">${TEXTS.skip}</a>
    <header class="top">
      <button type="button" class="plain small menu" aria-expanded=${isOpen} aria-controls="pages"
        onClick=${() => setOpen(!isOpen)}>${TEXTS.menu}</button>
      <${Link} class="brand" to=${hrefOf("/")}>Headgate <bdi class="gateway">${me?.gateway.name ?? ""}</bdi></${Link}>
      <${Connection} />
      ${Zone(zone, setZone)}${me === null ? null : Who(me)}
    </header>
    <div class="columns">
      <nav id="pages" class=${isOpen ? "open" : ""} aria-label=${TEXTS.pagesLabel}><ul>
        ${PAGES.map(([path, name]) => {
          const isCurrent = path === "/" ? place.path === "/" : place.path.startsWith(path);
          return html`<li key=${path}><${Link} to=${hrefOf(path)} current=${isCurrent}>${TEXTS.pages[name]}${
            path === "/" ? Badge(attention) : null
          }</${Link}></li>`;
        })}
      </ul></nav>
      <main id="content" tabindex="-1" ref=${main}>${children}</main>
    </div>`;
}

function Badge(attention: number | null): Element | null {
  if (attention === null || attention === 0) return null;
  return html`<span class="badge"><span class="hidden">: </span>${count(attention)}</span>`;
}

function Zone(zone: string, setZone: (zone: string) => void): Element {
  const own = zoneOfBrowser();
  const other = zone === "UTC" ? own : "UTC";
  const words = zone === "UTC" ? "UTC" : `${zone} (${offset(nowMs(), zone)})`;
  return html`<div class="zone"><span><span class="wide-only">${TEXTS.times} </span>${words}</span>
    ${
      own === "UTC"
        ? null
        : html`<button type="button" class="link" onClick=${() => setZone(other)}>${TEXTS.showIn(other)}</button>`
    }</div>`;
}

function Who({ name, role, csrfToken }: Me): Element {
  const children = html`<button type="submit" class="plain small">${TEXTS.signOut}</button>`;
  return html`<div class="who"><span><bdi>${name}</bdi> <span class="detail">${TEXTS.roles[role]}</span></span>
    ${csrfToken === null ? null : Form({ action: `${BASE}/console/sign-out`, csrf: csrfToken, children })}</div>`;
}

/** Said once the live connection is interrupted, and while it is. */
function Connection(): Element {
  const [isLost, setLost] = useState(false);
  useLive("connected", (isConnected) => setLost(isConnected === false));
  return html`<p class="connection" role="status">${isLost ? TEXTS.connectionLost : ""}</p>`;
}
