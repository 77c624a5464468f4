/** One point: its versions, and where each came from. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { OriginRow } from "#wire/origin.ts";
import { Scroll } from "../kit/browser/scroll.ts";
import { type Element, html } from "../kit/html.ts";
import { Card } from "../kit/parts.ts";
import { dateWords } from "../kit/zone.ts";
import { ask, pathOf } from "./hub.ts";
import type { Loaded } from "./loaded.ts";
import type { PointName, State } from "./state.ts";
import { TEXTS } from "./texts.ts";

const { point: words } = TEXTS;
const DIGITS = 9;

interface PointProps {
  readonly name: PointName;
  readonly loaded: Loaded;
  onState(state: State): void;
  onClose(): void;
  onFault(thrown: unknown): void;
}

export function Point({ name, loaded, onState, onClose, onFault }: PointProps): Element {
  const [rows, setRows] = useState<readonly OriginRow[] | null>(null);
  const heading = useRef<HTMLDivElement>(null);
  const { variableId, date } = name;
  useEffect(() => {
    const stop = new AbortController();
    setRows(null);
    const query = { VariableId: variableId, Date: date, TimeZoneId: loaded.zone };
    ask<readonly OriginRow[]>("/data/origin", query, stop.signal).then(
      (found) => {
        setRows(found);
        heading.current?.focus();
      },
      (thrown: unknown) => {
        if (!stop.signal.aborted) onFault(thrown);
      },
    );
    return () => stop.abort();
  }, [variableId, date, loaded.zone]);
  const variable = loaded.variables.find(({ id }) => id === variableId);
  const content =
    rows === null
      ? html`<p class="muted">${TEXTS.loading}</p>`
      : rows.length === 0
        ? html`<p class="muted">${words.none}</p>`
        : html`<${VersionTable} rows=${rows} loaded=${loaded} onState=${onState} />`;
  const at = rows?.[0]?.date ?? date;
  const title = words.title(variable?.name ?? "", dateWords(at, false));
  return html`<div class="point" ref=${heading} tabindex="-1">${Card({
    id: "point",
    title,
    children: html`${content}
      <p><button type="button" class="plain small" onClick=${onClose}>${words.close}</button></p>`,
  })}</div>`;
}

interface TableProps {
  readonly rows: readonly OriginRow[];
  readonly loaded: Loaded;
  onState(state: State): void;
}

function VersionTable({ rows, loaded, onState }: TableProps): Element {
  const { columns } = words;
  const names = ["value", "stored", "tag", "operation", "origin", "user", "received"] as const;
  const heads = names.map(
    (name) => html`<th scope="col" class=${name === "value" ? "number" : ""}>${columns[name]}</th>`,
  );
  const body = rows.map((row) => {
    const { versionTimestamp } = row;
    const value = row.value.toLocaleString(undefined, { maximumFractionDigits: DIGITS });
    const show = () => onState({ kind: "asof", at: versionTimestamp ?? "" });
    const unit = loaded.units.get(row.unitId)?.symbol ?? "";
    const stored =
      versionTimestamp === null
        ? words.unversioned
        : html`<span class="moment">${momentWords(versionTimestamp, loaded.zone)}</span>
            <button type="button" class="plain small" onClick=${show}
              aria-label=${words.showOf(momentWords(versionTimestamp, loaded.zone))}>${words.show}</button>`;
    const tags = Object.entries(row.tags ?? {}).filter(([key]) => key !== "version");
    return html`<tr key=${versionTimestamp}>
      <td class="number" data-label=${columns.value}>${`${value} ${unit}`}</td>
      <td data-label=${columns.stored}>${stored}</td>
      <td data-label=${columns.tag}><bdi>${row.version ?? ""}</bdi>${tags.map(
        ([key, value]) => html`<span class="detail"><bdi>${`${key}: ${value}`}</bdi></span>`,
      )}</td>
      <td data-label=${columns.operation}><bdi>${row.operationId ?? words.unknown}</bdi></td>
      <td data-label=${columns.origin}>${OriginOf(row)}</td>
      <td data-label=${columns.user}><bdi>${row.user ?? ""}</bdi></td>
      <td data-label=${columns.received}>${row.receivedAt === null ? "" : momentWords(row.receivedAt, loaded.zone)}</td>
    </tr>`;
  });
  return html`<${Scroll}><table class="rows"><caption class="hidden">${words.caption}</caption>
    <thead><tr>${heads}</tr></thead><tbody>${body}</tbody></table></${Scroll}>`;
}

function OriginOf({ file, row, sheet, link, calculationId }: OriginRow): Element {
  const place = [sheet, row === null ? null : words.row(row)].filter((text) => text !== null).join(", ");
  return html`${
    file === null
      ? null
      : html`<a href=${pathOf(`/storage/${file.id}`)}><bdi>${file.fileName ?? words.removed}</bdi></a>${
          place === "" ? null : html`<span class="detail"><bdi>${place}</bdi></span>`
        }`
  }${calculationId === null ? null : html`<span>${words.calculation(calculationId)}</span>`}${
    link === null ? null : html`<a href=${link} rel="noopener noreferrer" target="_blank">${words.link}</a>`
  }`;
}

/** Of an instant, in the zone of the view, to the second. */
function momentWords(iso: string, zone: string): string {
  return new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: zone }).format(
    Date.parse(iso),
  );
}
