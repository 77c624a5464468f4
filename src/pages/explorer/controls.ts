/** Period, zone, granularity and aggregate of the plot. */
import { AGGREGATED, type Aggregated } from "#wire/referentials/aggregates.ts";
import { type Element, html } from "../kit/html.ts";
import { addToLocal, localOfMs, zoneOfBrowser } from "../kit/zone.ts";
import { GRANULARITIES, type Granularity, type Shown, VIEWS, type View } from "./address.ts";
import type { Loaded } from "./loaded.ts";
import { TEXTS } from "./texts.ts";

export interface ControlsProps {
  readonly shown: Shown;
  readonly loaded: Loaded;
  onChange(change: Partial<Shown>): void;
}

export function Controls(props: ControlsProps): Element {
  return html`<div class="controls">${Period(props)}${Shape(props)}</div>`;
}

function Period({ loaded, onChange }: ControlsProps): Element {
  const { from, to, fromMs, toMs, zone } = loaded;
  const length = toMs - fromMs;
  const set = (start: number, end: number) =>
    onChange({ from: localOfMs(Math.round(start), zone), to: localOfMs(Math.round(end), zone) });
  const edge = (name: "from" | "to") => (event: Event) => {
    const { value } = event.target as HTMLInputElement;
    const period = { from, to, [name]: value };
    if (value !== "" && period.from < period.to) onChange(period);
  };
  const begin = from.slice(0, 10);
  const presets = [
    { words: TEXTS.presets.day, from: begin, to: addToLocal(begin, 1, "day") },
    { words: TEXTS.presets.week, from: begin, to: addToLocal(begin, 7, "day") },
    monthOf(begin),
    yearOf(begin),
  ];
  const button = (words: string, act: () => void) =>
    html`<button type="button" class="plain small" onClick=${act}>${words}</button>`;
  const field = (name: "from" | "to", value: string) =>
    html`<div class="field">
      <label for=${name}>${TEXTS[name]}</label>
      <input id=${name} type="datetime-local" value=${value.length === 10 ? `${value}T00:00` : value} required
        onChange=${edge(name)} />
    </div>`;
  return html`<fieldset class="row"><legend class="hidden">${TEXTS.period}</legend>
    ${field("from", from)}${field("to", to)}
    <div class="buttons" role="group" aria-label=${TEXTS.presetsLabel}>
      ${presets.map((preset) => button(preset.words, () => onChange({ from: preset.from, to: preset.to })))}
    </div>
    <div class="buttons" role="group" aria-label=${TEXTS.period}>
      ${button(TEXTS.earlier, () => onChange(movedBy(-1, loaded)))}
      ${button(TEXTS.later, () => onChange(movedBy(1, loaded)))}
      ${button(TEXTS.zoomIn, () => set(fromMs + length / 4, toMs - length / 4))}
      ${button(TEXTS.zoomOut, () => set(fromMs - length / 2, toMs + length / 2))}
      ${button(TEXTS.newest, () => onChange({ from: null, to: null }))}
    </div>
  </fieldset>`;
}

function monthOf(day: string) {
  const from = `${day.slice(0, 7)}-01`;
  return { words: TEXTS.presets.month, from, to: addToLocal(from, 1, "month") };
}

function yearOf(day: string) {
  const from = `${day.slice(0, 4)}-01-01`;
  return { words: TEXTS.presets.year, from, to: addToLocal(from, 1, "year") };
}

/** The period before or after: whole months and years keep their calendar, others their number of days or minutes. */
function movedBy(count: -1 | 1, { from, to, fromMs, toMs, zone }: Loaded): Pick<Shown, "from" | "to"> {
  for (const unit of ["year", "month"] as const)
    if (addToLocal(from, 1, unit) === addToLocal(to, 0, unit))
      return { from: addToLocal(from, count, unit), to: addToLocal(to, count, unit) };
  const days = (Date.parse(`${addToLocal(to, 0, "day")}Z`) - Date.parse(`${addToLocal(from, 0, "day")}Z`)) / 86_400_000;
  if (Number.isInteger(days))
    return { from: addToLocal(from, count * days, "day"), to: addToLocal(to, count * days, "day") };
  const length = (toMs - fromMs) * count;
  return { from: localOfMs(fromMs + length, zone), to: localOfMs(toMs + length, zone) };
}

interface Option {
  readonly value: string;
  readonly words: string;
}

function Shape({ shown, loaded, onChange }: ControlsProps): Element {
  const { granularities, aggregates } = TEXTS;
  const automatic = TEXTS.automatic(granularities[loaded.granularity]);
  const isRaw = loaded.granularity === "Raw";
  const isHeat = shown.view === "heat";
  return html`<div class="row">
    ${choice({
      id: "view",
      label: TEXTS.view,
      value: shown.view,
      options: VIEWS.map((value) => ({ value, words: TEXTS.views[value] })),
      set: (value) => onChange({ view: value as View }),
    })}
    ${isHeat && loaded.variables.length > 1 ? HeatVariable({ shown, loaded, onChange }) : null}
    ${choice({
      id: "granularity",
      label: TEXTS.granularity,
      value: isHeat ? "Hour" : (shown.granularity ?? ""),
      isDisabled: isHeat,
      options: [
        { value: "", words: shown.granularity === null ? automatic : TEXTS.automatic("…") },
        ...GRANULARITIES.map((value) => ({ value, words: granularities[value] })),
      ],
      set: (value) => onChange({ granularity: (value || null) as Granularity | null }),
    })}
    ${choice({
      id: "aggregate",
      label: TEXTS.aggregate,
      value: isRaw ? "" : (shown.aggregate ?? ""),
      isDisabled: isRaw,
      options: [
        { value: "", words: isRaw ? TEXTS.rawHasNone : TEXTS.byQuantity },
        ...AGGREGATED.map((value) => ({ value, words: aggregates[value] })),
      ],
      set: (value) => onChange({ aggregate: (value || null) as Aggregated | null }),
    })}
    ${choice({
      id: "zone",
      label: TEXTS.zone,
      value: shown.zone ?? "",
      options: zonesOf(shown, loaded),
      set: (value) => onChange({ zone: value || null }),
    })}
  </div>`;
}

function HeatVariable({ shown, loaded, onChange }: ControlsProps): Element {
  const options = loaded.variables.map(({ id, name }) => ({ value: String(id), words: name }));
  const known = options.find(({ value }) => value === String(shown.of)) ?? options[0];
  const set = (value: string) => onChange({ of: Number(value) });
  return choice({ id: "of", label: TEXTS.heat.variable, value: known?.value ?? "", options, set });
}

function zonesOf({ zone }: Shown, { siteZone }: Loaded): readonly Option[] {
  const own = zoneOfBrowser();
  const names = ["UTC", ...Intl.supportedValuesOf("timeZone")];
  const others = [...new Set([...(zone === null ? [] : [zone]), ...names])];
  return [
    { value: "", words: TEXTS.zoneOfSite(siteZone) },
    ...others.map((value) => ({ value, words: value === own ? TEXTS.zoneOfBrowser(value) : value })),
  ];
}

interface ChoiceProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly isDisabled?: boolean;
  readonly options: readonly Option[];
  set(value: string): void;
}

export function choice({ id, label, value, isDisabled = false, options, set }: ChoiceProps): Element {
  const change = (event: Event) => set((event.target as HTMLSelectElement).value);
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <select id=${id} value=${value} disabled=${isDisabled} onChange=${change}>
      ${options.map((one) => html`<option key=${one.value} value=${one.value}>${one.words}</option>`)}
    </select>
  </div>`;
}
