/** The search for files. What is searched for stands in the address. */
import { useEffect, useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { msOfLocal } from "../../kit/zone.ts";
import type { FileRow, FilesFound } from "../contract.ts";
import { useLiveReload } from "../live.ts";
import { Choice, FileLink, Foreign, Labelled, Loaded, type PageProps, Scroll, State } from "../parts.ts";
import { type List, useList, useQuery } from "../query.ts";
import { go, hrefOf } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { useZone, When } from "../time.ts";
import { bytes, count } from "../words.ts";

const { files } = TEXTS;
const PART = 50;
/** After the last letter. */
const TYPED_MS = 100;
const FIELDS = ["q", "state", "drop", "trigger", "from", "to"] as const;
type Wanted = Readonly<Record<(typeof FIELDS)[number], string>>;

export function FilesPage({ place }: PageProps): Element {
  const zone = useZone();
  const wanted = Object.fromEntries(FIELDS.map((name) => [name, place.search.get(name) ?? ""])) as Wanted;
  const instant = (day: string, days: number) =>
    /^\d{4}-\d{2}-\d{2}$/.test(day) ? new Date(msOfLocal(day, zone) + days * 86_400_000).toISOString() : null;
  // The end is included: the whole of its day.
  const parameters = { ...wanted, from: instant(wanted.from, 0), to: instant(wanted.to, 1), limit: PART };
  const found = useList<FileRow>("/files", "files", parameters);
  useLiveReload(["files", "state"], () => {
    // Rows that were added by the person would vanish, and a search through very many files costs the gateway much.
    if ((found.answer?.length ?? 0) <= PART && !isStopped(found)) found.reload();
  });
  // A search through very many files stops after a moment; it continues by itself until it has found one.
  const isContinued = found.answer?.length === 0 && isStopped(found);
  useEffect(() => {
    if (isContinued) found.more();
  }, [isContinued, found.last]);
  const change = (part: Partial<Wanted>) => go(hrefOf("/files", { ...wanted, ...part }), true);
  return html`<h1>${TEXTS.pages.files}</h1>
    <${Filters} wanted=${wanted} onChange=${change} />
    <${Loaded} of=${found}>${(listed: readonly FileRow[]) => {
      // Files that were found by the beginning of their names are found again where a search continues.
      const rows = [...new Map(listed.map((one) => [one.id, one])).values()];
      const table = rows.length === 0 ? null : html`<${FileTable} rows=${rows} caption=${files.caption} />`;
      return html`${table}${
        isContinued
          ? html`<p class="muted" role="status">${files.searching}${" "}
              <${When} at=${(found.last as FilesFound).searchedTo} /></p>`
          : html`<${Rest} found=${found} rows=${rows.length} />`
      }`;
    }}</${Loaded}>`;
}

/** Whether there are more, or may be: a search through very many files stops after a moment, to be continued. */
function Rest({ found, rows }: { readonly found: List<FileRow>; readonly rows: number }): Element {
  if (!found.hasMore) return html`<p class=${rows === 0 ? "muted" : "detail"}>${files.all(rows)}</p>`;
  const { searchedTo } = found.last as FilesFound;
  const stopped = isStopped(found);
  return html`<p role="status"><button type="button" class="plain small" onClick=${found.more}>${
    stopped ? files.searchFurther : TEXTS.more
  }</button> <span class="detail">${files.shown(rows)}${
    stopped ? html` · ${files.searchedTo} <${When} at=${searchedTo} />` : null
  }</span></p>`;
}

function isStopped({ last, hasMore }: List<FileRow>): boolean {
  return hasMore && last !== null && (last as FilesFound).files.length < PART;
}

interface FiltersProps {
  readonly wanted: Wanted;
  onChange(part: Partial<Wanted>): void;
}

function Filters({ wanted, onChange }: FiltersProps): Element {
  const [typed, setTyped] = useState(wanted.q);
  useEffect(() => setTyped(wanted.q), [wanted.q]);
  useEffect(() => {
    if (typed === wanted.q) return;
    const timer = setTimeout(() => onChange({ q: typed }), TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const drops = useQuery<readonly { readonly drop: string }[]>("/drops");
  const triggers = useQuery<readonly { readonly name: string }[]>("/triggers");
  const choose = (name: "state" | "drop" | "trigger", known: readonly string[], words = (one: string) => one) => {
    const { [name]: value } = wanted;
    const all = value === "" || known.includes(value) ? known : [value, ...known];
    return Choice({
      id: name,
      label: files.filters[name],
      value,
      options: [{ value: "", words: files.any }, ...all.map((one) => ({ value: one, words: words(one) }))],
      set: (chosen) => onChange({ [name]: chosen }),
    });
  };
  const day = (name: "from" | "to") =>
    Labelled({
      id: name,
      label: files.filters[name],
      children: html`<input id=${name} type="date" value=${wanted[name]}
        onChange=${(event: Event) => onChange({ [name]: (event.target as HTMLInputElement).value })} />`,
    });
  const type = (event: Event) => setTyped((event.target as HTMLInputElement).value);
  const isFiltered = FIELDS.some((name) => wanted[name] !== "");
  return html`<form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
    <div class="field search"><label for="q">${files.filters.q}</label>
      <input id="q" type="search" value=${typed} onInput=${type} autocomplete="off" spellcheck=${false} maxlength="500"
        aria-describedby="q-hint" /><p class="hint" id="q-hint">${files.searchHint}</p></div>
    ${choose("state", TEXTS.standings, (one) => TEXTS.states[one] ?? one)}
    ${choose(
      "drop",
      (drops.answer ?? []).map(({ drop }) => drop),
    )}
    ${choose(
      "trigger",
      (triggers.answer ?? []).map(({ name }) => name),
    )}
    ${day("from")}${day("to")}
    ${
      isFiltered
        ? html`<button type="button" class="plain small" onClick=${() => go(hrefOf("/files"))}>${files.clear}</button>`
        : null
    }
  </form>`;
}

interface TableProps {
  readonly rows: readonly FileRow[];
  readonly caption: string;
}

export function FileTable({ rows, caption }: TableProps): Element {
  const { columns } = files;
  return html`<${Scroll}><table class="rows files"><caption class="hidden">${caption}</caption>
    <thead><tr><th scope="col">${columns.file}</th><th scope="col">${columns.state}</th>
      <th scope="col">${columns.trigger}</th><th scope="col" class="number">${columns.points}</th>
      <th scope="col">${columns.seen}</th><th scope="col" class="number">${columns.size}</th></tr></thead>
    <tbody>${rows.map(
      ({ id, drop, path, state, trigger, points, seenAt, size, reason }) => html`<tr key=${id}>
        <td data-label=${columns.file}><${FileLink} file=${id} path=${path} /> <span class="detail"><bdi>${drop}</bdi>
          </span></td>
        <td data-label=${columns.state}><${State} state=${state ?? "container"} />${
          // Which rules of which triggers do not hold is on the page of the file.
          reason === null || reason === "" || state === "unmatched"
            ? null
            : html` <span class="detail"><${Foreign} text=${reason} most=${140} /></span>`
        }</td>
        <td data-label=${columns.trigger}><bdi>${trigger ?? "–"}</bdi></td>
        <td class="number" data-label=${columns.points}>
          ${points === null || points.mapped === 0 ? "–" : count(points.mapped)}</td>
        <td data-label=${columns.seen}><${When} at=${seenAt} /></td>
        <td class="number" data-label=${columns.size}>${bytes(size)}</td></tr>`,
    )}</tbody></table></${Scroll}>`;
}
