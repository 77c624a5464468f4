/** The console: the frame, and in it the page of the address. */
import { useEffect, useState } from "preact/hooks";
import { type Element, html } from "../kit/html.ts";
import { ActionHost } from "./actions/host.ts";
import { ConfigurationPage } from "./configuration/page.ts";
import type { Me } from "./contract.ts";
import { DropsPage } from "./drops/page.ts";
import { FilePage } from "./files/file.ts";
import { ReadingsPage } from "./files/origin.ts";
import { FilesPage } from "./files/page.ts";
import { Frame } from "./frame.ts";
import { InboxPage } from "./inbox/page.ts";
import { useLive } from "./live.ts";
import { MigrationsPage } from "./migration/page.ts";
import { OverviewPage } from "./overview/page.ts";
import { Fault } from "./parts.ts";
import { PersonContext } from "./person.ts";
import { PlaygroundPage } from "./playground/page.ts";
import { useQuery } from "./query.ts";
import { hrefOf, Link, type Place, usePlace } from "./router.ts";
import { TEXTS } from "./texts.ts";
import { keepZone, keptZone, ZoneContext } from "./time.ts";
import { TriggersPage } from "./triggers/page.ts";

export interface PageProps {
  readonly place: Place;
}

type Page = (props: PageProps) => Element;
type Name = keyof typeof TEXTS.pages;

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
