/** The explorer: the tree, and beside it what was chosen there. */
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { type Element, html } from "../kit/html.ts";
import { Notice } from "../kit/parts.ts";
import { localOfMs } from "../kit/zone.ts";
import { addressOf, readAddress, type Shown, VARIABLES_MAX } from "./address.ts";
import { Chart } from "./chart.ts";
import { countDifferences, differences } from "./comparison.ts";
import { Controls } from "./controls.ts";
import { Exports } from "./exports.ts";
import { Figure, Table } from "./figure.ts";
import { pathOf, SessionEnded } from "./hub.ts";
import { type Loaded, useLoaded } from "./loaded.ts";
import { Point } from "./point.ts";
import { dateAt, type Series } from "./series.ts";
import { Legend } from "./tables.ts";
import { TEXTS } from "./texts.ts";
import { Tree } from "./tree.ts";
import { Versions } from "./versions.ts";

export function App(): Element {
  const [shown, setShown] = useState(() => readAddress(location.search));
  const [fault, setFault] = useState<unknown>(null);
  useEffect(() => {
    const back = () => setShown(readAddress(location.search));
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  const { loaded, isLoading } = useLoaded(shown, setFault);
  const change = (part: Partial<Shown>) => {
    const next = { ...shown, ...part };
    history.pushState(null, "", addressOf(next));
    setFault(null);
    setShown(next);
  };
  const choose = (id: number, isAdded: boolean) => {
    const others = isAdded ? shown.variables.filter((one) => one !== id) : [];
    change({ variables: [...others, id].slice(-VARIABLES_MAX), ...(isAdded ? {} : { units: [], point: null }) });
  };
  return html`<div class="explorer">
    <${Tree} chosen=${shown.variables} onChoose=${choose} onFault=${setFault} />
    <div class="shown" aria-busy=${isLoading}>
      ${fault === null ? null : Fault(fault)}
      <p class="hidden" role="status">${isLoading ? TEXTS.loading : ""}</p>
      ${shown.variables.length === 0 ? html`<p class="muted">${TEXTS.choose}</p>` : null}
      ${loaded === null ? null : html`<${Plot} ...${{ shown, loaded }} onChange=${change} onFault=${setFault} />`}
    </div>
  </div>`;
}

function Fault(thrown: unknown): Element {
  if (!(thrown instanceof SessionEnded)) {
    const words = thrown instanceof Error ? thrown.message : String(thrown);
    return Notice({ kind: "danger", children: html`<p>${TEXTS.failed(words)}</p>` });
  }
  const next = `${location.pathname}${location.search}`;
  const link = html`<a href=${pathOf("/sign-in", { next })}>${TEXTS.signIn}</a>`;
  return Notice({ kind: "danger", children: html`<p>${TEXTS.ended} ${link}</p>` });
}

interface PlotProps {
  readonly shown: Shown;
  readonly loaded: Loaded;
  onChange(change: Partial<Shown>): void;
  onFault(thrown: unknown): void;
}

function Plot({ shown, loaded, onChange, onFault }: PlotProps): Element {
  const { others, units, zone, granularity, view } = loaded;
  const pick = useCallback(
    (one: Series, at: number) => onChange({ point: { variableId: one.variable.id, date: dateAt(one, at) } }),
    [loaded],
  );
  const onPick = granularity === "Raw" ? pick : undefined;
  const zoom = useCallback(
    (start: number, end: number) => {
      const [first, last] = [localOfMs(start, zone), localOfMs(end, zone)];
      if (first < last) onChange({ from: first, to: last });
    },
    [loaded],
  );
  const setUnit = (unitId: number) => {
    const family = units.get(unitId)?.unitFamilyId;
    const others = shown.units.filter((one) => units.get(one)?.unitFamilyId !== family);
    onChange({ units: [...others, unitId] });
  };
  const remove = (id: number) => onChange({ variables: shown.variables.filter((one) => one !== id) });
  return html`
    <${Legend} loaded=${loaded} onUnit=${setUnit} onRemove=${remove} />
    <${Controls} shown=${shown} loaded=${loaded} onChange=${onChange} />
    <${Versions} shown=${shown} loaded=${loaded} onChange=${onChange} />
    <${Figure} ...${{ shown, loaded, onPick }} onZoom=${zoom} />
    ${others.length === 0 || view !== "time" ? null : html`<${Difference} loaded=${loaded} onZoom=${zoom} />`}
    ${
      shown.point === null
        ? null
        : html`<${Point} name=${shown.point} loaded=${loaded} onFault=${onFault}
            onState=${(state: Shown["state"]) => onChange({ state })} onClose=${() => onChange({ point: null })} />`
    }
    <${Exports} loaded=${loaded} />
    <${Table} ...${{ loaded, onPick }} />`;
}

interface DifferenceProps {
  readonly loaded: Loaded;
  onZoom(fromMs: number, toMs: number): void;
}

/** The shown values minus those that they are compared with. */
function Difference({ loaded, onZoom }: DifferenceProps): Element {
  const { series, others, units, zone, fromMs, toMs } = loaded;
  const drawn = useMemo(() => differences(series, others), [loaded]);
  const { changed, added, missing } = useMemo(() => countDifferences(series, others), [loaded]);
  const words = TEXTS.versions.difference;
  return html`<h2>${words}</h2><p role="status">${TEXTS.versions.counts(changed, added, missing)}</p>
    <${Chart} ...${{ series: drawn, units, zone, fromMs, toMs, words }} onZoom=${onZoom} />`;
}
