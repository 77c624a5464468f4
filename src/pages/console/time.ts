/** Moments in the zone that the person chose: of this browser, or UTC. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { type Element, html } from "../kit/html.ts";
import { nowMs, zoneOfBrowser } from "../kit/zone.ts";
import { TEXTS } from "./texts.ts";
import { length, moment, offset } from "./words.ts";

const KEPT = "headgate.zone";

export const ZoneContext = createContext(zoneOfBrowser());

export function useZone(): string {
  return useContext(ZoneContext);
}

export function keptZone(): string {
  try {
    return localStorage.getItem(KEPT) === "UTC" ? "UTC" : zoneOfBrowser();
  } catch {
    // Storage may be forbidden: then the choice lasts as long as the page.
    return zoneOfBrowser();
  }
}

export function keepZone(zone: string): void {
  try {
    localStorage.setItem(KEPT, zone);
  } catch {
    // As above: the choice lasts as long as the page.
    return;
  }
}

interface WhenProps {
  readonly at: string | number | null | undefined;
  /** Adds how long ago it was. */
  readonly age?: boolean;
  readonly seconds?: boolean;
}

export function When({ at, age = false, seconds = true }: WhenProps): Element | null {
  const zone = useZone();
  if (at === null || at === undefined || at === "") return null;
  const ms = typeof at === "number" ? at : Date.parse(at);
  if (!Number.isFinite(ms)) return html`<span>${String(at)}</span>`;
  const iso = new Date(ms).toISOString();
  const words = moment(ms, zone, seconds);
  const passed = nowMs() - ms;
  return html`<span class="when"><time dateTime=${iso} title=${`${words} ${offset(ms, zone)} · ${iso}`}>${words}</time>
    ${
      age && passed >= 0 ? html` <span class="detail">(${TEXTS.ago(length(Math.max(passed, 1_000)))})</span>` : null
    }</span>`;
}
