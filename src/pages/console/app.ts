/** The console: the frame, and in it the page of the address. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Form } from "../kit/forms.ts";
import { type Content, type Element, html } from "../kit/html.ts";
import { nowMs, zoneOfBrowser } from "../kit/zone.ts";
import { ActionHost } from "./actions/bar.ts";
import { BASE } from "./api.ts";
import { ConfigurationPage } from "./configuration/page.ts";
import type { Me } from "./contract.ts";
import { DropsPage } from "./drops/page.ts";
import { FilePage } from "./files/file.ts";
import { ReadingsPage } from "./files/origin.ts";
import { FilesPage } from "./files/page.ts";
import { InboxPage } from "./inbox/page.ts";
import { useLive } from "./live.ts";
import { MigrationsPage } from "./migration/page.ts";
import { OverviewPage } from "./overview/page.ts";
import { Fault, type PageProps } from "./parts.ts";
import { PersonContext } from "./person.ts";
import { PlaygroundPage } from "./playground/page.ts";
import { useQuery } from "./query.ts";
import { hrefOf, Link, type Place, usePlace } from "./router.ts";
import { TEXTS } from "./texts.ts";
import { keepZone, keptZone, ZoneContext } from "./time.ts";
import { TriggersPage } from "./triggers/page.ts";
import { count, offset } from "./words.ts";

type Page = (props: PageProps) => Element;
type Name = keyof typeof TEXTS.pages;

const LINKS = [
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

const PAGES: readonly (readonly [RegExp, Name, Page])[] = [
  [/^\/$/, "attention", InboxPage],
  [/^\/files$/, "files", FilesPage],
  [/^\/files\/\d+$/, "file", FilePage],
  [/^\/readings$/, "readings", ReadingsPage],
  [/^\/overview$/, "overview", OverviewPage],
  [/^\/drops(\/.+)?$/, "drops", DropsPage],
  [/^\/triggers$/, "triggers", TriggersPage],
  [/^\/playground$/, "playground", PlaygroundPage],
  [/^\/configuration$/, "configuration", ConfigurationPage],
  [/^\/migrations$/, "migrations", MigrationsPage],
];

export function App(): Element {
  const place = usePlace();
  const me = useQuery<Me>("/me");
  const [zone, setZone] = useState(keptZone);
  const [attention, setAttention] = useState<number | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  useLive("state", (state) => state !== null && setAttention(state.attention));
  useLive("fault", setFault);
  useEffect(() => {
    // The token of forms is that of the session, also when the page was open while it was renewed.
    const token = me.answer?.csrfToken ?? null;
    if (token !== null) document.querySelector('meta[name="csrf-token"]')?.setAttribute("content", token);
  }, [me.answer]);
  const choose = (chosen: string) => {
    keepZone(chosen);
    setZone(chosen);
  };
  const found = PAGES.find(([pattern]) => pattern.test(place.path));
  const title = found === undefined ? TEXTS.notFound : TEXTS.pages[found[1]];
  const frame = { me: me.answer, place, title, zone, attention, setZone: choose };
  return html`<${ZoneContext.Provider} value=${zone}><${PersonContext.Provider} value=${me.answer}>
    <${Frame} ...${frame}>
      <${Fault} fault=${me.fault ?? fault} />
      ${
        found === undefined
          ? html`<h1>${TEXTS.notFound}</h1><p><${Link} to=${hrefOf("/")}>${TEXTS.pages.attention}</${Link}></p>`
          : html`<${ActionHost} key=${place.path}><${found[2]} place=${place} /></${ActionHost}>`
      }
    </${Frame}>
  </${PersonContext.Provider}></${ZoneContext.Provider}>`;
}

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

/** The head of every page, and the links between them. */
function Frame({ me, place, title, zone, attention, children, setZone }: FrameProps): Element {
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
        ${LINKS.map(([path, name]) => {
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
