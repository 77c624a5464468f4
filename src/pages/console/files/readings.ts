/** The readings that a mapper made of a file as plot and table, each with its row. */
import { useMemo, useState } from "preact/hooks";
import uPlot, { type AlignedData, type Axis } from "uplot";
import { axisOf, Plot, TICKS, tick } from "../../kit/browser/plot.ts";
import { type Element, html } from "../../kit/html.ts";
import type { Readings } from "../contract.ts";
import { Foreign, Loaded, Scroll } from "../parts.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { useZone, When } from "../time.ts";
import { count, number, visible } from "../words.ts";
import { originLink } from "./origin.ts";
import type { ViewProps } from "./payload.ts";

/** Colours of the stylesheet, which repeat. */
const COLOURS = 8;
const AXIS_PIXELS = 60;
const { readings: words } = TEXTS;
const ROWS = 100;
const DRAWN_MOST = 8;

export type Reading = Readings["readings"][number];
type Target = Readings["targets"][number];

export function ReadingsView({ file, search }: ViewProps): Element {
  const { id } = file.arrival;
  const hasRun = file.runs.length > 0;
  const readings = useQuery<Readings>(hasRun ? `/files/${id}/readings` : null, { run: search.get("run") });
  const rowLink = (reading: Reading) =>
    hrefOf(`/files/${id}`, {
      view: "input",
      row: reading.row === null ? null : String(reading.row),
      sheet: reading.sheet,
    });
  if (!hasRun) return html`<p class="muted">${TEXTS.file.noReadings}</p>`;
  return html`<${Loaded} of=${readings}>${(shown: Readings) =>
    html`<${ReadingsPart} ...${{ ...shown, rowLink, isSent: true }} />`}</${Loaded}>`;
}

interface PartProps {
  readonly targets: readonly Target[];
  readonly readings: readonly Reading[];
  readonly isCut: boolean;
  /** Null: there is no page of the row. */
  readonly rowLink: ((reading: Reading) => string) | null;
  /** They are of a run, so other files may have brought the same date. */
  readonly isSent?: boolean;
}

/** The targets to choose from, their plot, and their values. */
export function ReadingsPart({ targets, readings, isCut, rowLink, isSent = false }: PartProps): Element {
  const [chosen, setChosen] = useState<ReadonlySet<string> | null>(null);
  const [most, setMost] = useState(ROWS);
  const drawn = chosen ?? new Set(targets.slice(0, 1).map(({ target }) => target));
  const shown = useMemo(() => readings.filter(({ target }) => drawn.has(target)), [readings, chosen]);
  const names = targets.filter(({ target }) => drawn.has(target)).slice(0, DRAWN_MOST);
  const choose = (target: string, isChosen: boolean) => {
    const next = new Set(drawn);
    next[isChosen ? "add" : "delete"](target);
    setChosen(next);
  };
  if (readings.length === 0 && targets.length === 0) return html`<p class="muted">${words.none}</p>`;
  return html`${isCut ? html`<p class="warn">${words.cut(readings.length)}</p>` : null}
    <${Targets} ...${{ targets, drawn, choose, names }} />
    ${shown.length === 0 ? null : html`<${ReadingsPlot} readings=${shown} targets=${names} />`}
    <${Values} ...${{ shown, most, rowLink, isSent }} hasMany=${drawn.size > 1} />
    ${
      shown.length > most
        ? html`<p><button type="button" class="plain small" onClick=${() => setMost(most * 5)}>${TEXTS.more}</button>
            <span class="detail">${TEXTS.ofRows(most, shown.length)}</span></p>`
        : null
    }`;
}

interface TargetsProps {
  readonly targets: readonly Target[];
  readonly drawn: ReadonlySet<string>;
  readonly names: readonly Target[];
  choose(target: string, isChosen: boolean): void;
}

function Targets({ targets, drawn, names, choose }: TargetsProps): Element {
  const { columns } = words;
  const [most, setMost] = useState(20);
  return html`<${Scroll}><table class="rows targets"><caption>${words.targets(targets.length)}</caption>
    <thead><tr><th scope="col">${columns.target}</th><th scope="col">${columns.unit}</th>
      <th scope="col" class="number">${columns.points}</th><th scope="col">${columns.from}</th>
        <th scope="col">${columns.to}</th></tr></thead>
    <tbody>${targets.slice(0, most).map(({ target, unit, points, from, to }) => {
      const at = names.findIndex((one) => one.target === target);
      const change = (event: Event) => choose(target, (event.target as HTMLInputElement).checked);
      return html`<tr key=${target}><td data-label=${columns.target}><label class="pick"><input type="checkbox"
          checked=${drawn.has(target)} onChange=${change} /><span
            class=${`swatch${at < 0 ? "" : ` series-${at % COLOURS}`}`} aria-hidden="true"></span>
          <span><${Foreign} text=${target} most=${160} /></span></label></td>
        <td data-label=${columns.unit}><bdi>${unit ?? "–"}</bdi></td><td class="number" data-label=${columns.points}>
          ${count(points)}</td>
        <td data-label=${columns.from}><${When} at=${from} seconds=${false} /></td><td data-label=${columns.to}>
          <${When} at=${to} seconds=${false} /></td></tr>`;
    })}</tbody></table></${Scroll}>
    ${
      targets.length > most
        ? html`<p><button type="button" class="plain small" onClick=${() => setMost(most * 5)}>${TEXTS.more}</button>
            <span class="detail">${TEXTS.ofRows(most, targets.length)}</span></p>`
        : null
    }`;
}

interface ValuesProps {
  readonly shown: readonly Reading[];
  readonly most: number;
  readonly hasMany: boolean;
  readonly rowLink: PartProps["rowLink"];
  readonly isSent: boolean;
}

function Values({ shown, most, hasMany, rowLink, isSent }: ValuesProps): Element {
  const { columns } = words;
  const hasVersion = shown.some(({ version }) => version !== null);
  const rowOf = (reading: Reading) => {
    if (reading.row === null) return "–";
    const row = reading.sheet === null ? String(reading.row) : `${reading.sheet} ${reading.row}`;
    return rowLink === null
      ? html`<bdi>${row}</bdi>`
      : html`<${Link} to=${rowLink(reading)}><bdi>${row}</bdi></${Link}>`;
  };
  const dateOf = ({ target, date }: Reading) => {
    const when = html`<${When} at=${date} />`;
    const ms = Date.parse(date);
    if (!isSent || !Number.isFinite(ms)) return when;
    return html`<${Link} to=${originLink(target, new Date(ms).toISOString())} title=${words.origin}>${when}</${Link}>`;
  };
  return html`<${Scroll}><table class="values"><caption class="hidden">${words.caption}</caption>
    <thead><tr>${hasMany ? html`<th scope="col">${columns.target}</th>` : null}<th scope="col">${columns.date}</th>
      <th scope="col" class="number">${columns.value}</th>${
        hasVersion
          ? html`<th scope="col">${columns.version}
        </th>`
          : null
      }
      <th scope="col" class="number">${columns.row}</th></tr></thead>
    <tbody>${shown.slice(0, most).map(
      (reading) => html`<tr>${hasMany ? html`<td><${Foreign} text=${reading.target} most=${80} /></td>` : null}
        <td>${dateOf(reading)}</td><td class="number">${number(reading.value)}</td>${
          hasVersion ? html`<td><bdi>${reading.version ?? ""}</bdi></td>` : null
        }<td class="number">${rowOf(reading)}</td></tr>`,
    )}</tbody></table></${Scroll}>`;
}

// Readings of some targets over time; one axis for each unit.

interface PlotProps {
  readonly readings: Readings["readings"];
  readonly targets: Readings["targets"];
}

function ReadingsPlot({ readings, targets }: PlotProps): Element {
  const zone = useZone();
  const data = useMemo(() => dataOf(readings, targets), [readings, targets.map(({ target }) => target).join("\n")]);
  const units = [...new Set(targets.map(({ unit }) => unit ?? ""))];
  const words = TEXTS.readings.plot(targets.map(({ target }) => target).join("; "));
  const draw = (colour: (name: string) => string) => ({
    data,
    options: {
      series: [
        {},
        ...targets.map(({ target, unit }, at) => ({
          label: target,
          scale: unit ?? "",
          stroke: colour(`series-${at % COLOURS}`),
          width: 1.5,
          points: { size: 4 },
        })),
      ],
      legend: { show: false },
      tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), zone),
      axes: [
        { ...axisOf(colour), values: TICKS },
        ...units.map((scale, at): Axis => {
          const axis = axisOf(colour);
          const side = at === 0 ? 3 : 1;
          const label = scale === "" ? {} : { label: visible(scale) };
          const grid = { ...axis.grid, show: at === 0 };
          return { ...axis, scale, side, grid, size: AXIS_PIXELS, ...label, values: (_, all) => all.map(tick) };
        }),
      ],
      cursor: { drag: { x: true, y: false } },
    },
  });
  return html`<${Plot} height=${() => 240} words=${words} inputs=${[data, zone]} draw=${draw} />`;
}

function dataOf(readings: PlotProps["readings"], targets: PlotProps["targets"]): AlignedData {
  const tables = targets.map(({ target }) => {
    const own = readings
      .filter((one) => one.target === target)
      .map(({ date, value }) => [Date.parse(date) / 1_000, value] as const)
      .sort(([one], [other]) => one - other);
    return [own.map(([at]) => at), own.map(([, value]) => value)] as AlignedData;
  });
  return tables.length === 0 ? [[]] : uPlot.join(tables);
}
