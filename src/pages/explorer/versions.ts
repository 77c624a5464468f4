/** Controls: which versions are shown, and what they are compared with. */
import { type Element, html } from "../kit/html.ts";
import { localOfMs, msOfLocal, nowMs } from "../kit/zone.ts";
import { type ControlsProps, choice } from "./controls.ts";
import { type Earlier, PERIODS, SPANS, type Span, type State } from "./state.ts";
import { TEXTS } from "./texts.ts";

const { versions: words } = TEXTS;

function instantOf(ms: number): string {
  return new Date(ms).toISOString();
}

const BEGINNINGS: Readonly<Record<State["kind"], () => State>> = {
  current: () => ({ kind: "current" }),
  last: () => ({ kind: "last", count: 24, span: "h" }),
  asof: () => ({ kind: "asof", at: instantOf(nowMs()) }),
  tag: () => ({ kind: "tag", tag: "" }),
};

export function Versions({ shown, loaded, onChange }: ControlsProps): Element {
  const { state, comparison } = shown;
  const kinds = Object.keys(BEGINNINGS) as State["kind"][];
  const freeze = () => onChange({ state: BEGINNINGS.asof() });
  const against = comparison.kind === "earlier" ? comparison.unit : comparison.kind === "none" ? "" : comparison.kind;
  const compare = (value: string) => {
    const unit = PERIODS.find((one) => one === value);
    if (unit !== undefined) onChange({ comparison: { kind: "earlier", unit } });
    else if (value === "asof") onChange({ comparison: { kind: "asof", at: instantOf(nowMs() - SPANS.d) } });
    else onChange({ comparison: { kind: "none" } });
  };
  return html`<div class="row" role="group" aria-label=${words.label}>
    ${choice({
      id: "versions",
      label: words.label,
      value: state.kind,
      options: kinds.map((value) => ({ value, words: words.kinds[value] })),
      set: (value) => onChange({ state: BEGINNINGS[value as State["kind"]]() }),
    })}
    ${Detail({ shown, loaded, onChange })}
    ${
      state.kind === "asof"
        ? null
        : html`<button type="button" class="plain small" onClick=${freeze}>${words.freeze}</button>`
    }
    ${choice({
      id: "comparison",
      label: words.compare,
      value: against,
      options: [
        { value: "", words: words.nothing },
        { value: "asof", words: words.other },
        ...PERIODS.map((unit: Earlier) => ({ value: unit, words: words.earlier[unit] })),
      ],
      set: compare,
    })}
    ${
      comparison.kind === "asof"
        ? moment("compared", words.otherMoment, comparison.at, loaded.zone, (at) =>
            onChange({ comparison: { kind: "asof", at } }),
          )
        : null
    }
  </div>`;
}

function Detail({ shown: { state }, loaded, onChange }: ControlsProps): Element | null {
  if (state.kind === "asof")
    return moment("moment", words.moment, state.at, loaded.zone, (at) => onChange({ state: { kind: "asof", at } }));
  if (state.kind === "tag") {
    const set = (event: Event) => onChange({ state: { kind: "tag", tag: (event.target as HTMLInputElement).value } });
    return html`<div class="field"><label for="tag">${words.tag}</label>
      <input id="tag" value=${state.tag} maxlength="200" autocomplete="off" spellcheck=${false}
        onChange=${set} /></div>`;
  }
  if (state.kind === "current") return null;
  const count = (event: Event) => {
    const value = Math.floor(Number((event.target as HTMLInputElement).value));
    if (value > 0 && value <= 9_999) onChange({ state: { ...state, count: value } });
  };
  return html`<div class="field short"><label for="count">${words.count}</label>
      <input id="count" type="number" min="1" max="9999" value=${state.count} onChange=${count} /></div>
    ${choice({
      id: "span",
      label: words.span,
      value: state.span,
      options: (Object.keys(SPANS) as Span[]).map((value) => ({ value, words: words.spans[value] })),
      set: (value) => onChange({ state: { ...state, span: value as Span } }),
    })}`;
}

function moment(id: string, label: string, at: string, zone: string, set: (at: string) => void): Element {
  const ms = Date.parse(at);
  const second = new Date(ms).getUTCSeconds();
  const local = `${localOfMs(ms, zone)}:${String(second).padStart(2, "0")}`;
  const change = (event: Event) => {
    const { value } = event.target as HTMLInputElement;
    const [minute = "", rest = "00"] = [value.slice(0, 16), value.slice(17, 19)];
    if (value !== "") set(instantOf(msOfLocal(minute, zone) + Number(rest || "00") * 1_000));
  };
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} type="datetime-local" step="1" value=${local} required onChange=${change} /></div>`;
}
