/** A file as it came, as text or as a table, with the refused rows marked. Nothing of it is interpreted. */
import { useEffect, useRef } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { addressOf } from "../api.ts";
import type { InputPage } from "../contract.ts";
import { Choice, Loaded } from "../parts.ts";
import { useQuery } from "../query.ts";
import { go, hrefOf } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { visible } from "../words.ts";
import { cellOf, columnIn, lettersOf } from "./marks.ts";
import type { ViewProps } from "./payload.ts";

const { input: words } = TEXTS;
const ROWS = 100;
const BEFORE = 10;
const EXCERPT = { rows: 7, before: 3 };
/** Rows in which the names of columns may stand. */
const HEADER_ROWS = 5;

type Table = Extract<InputPage, { readonly kind: "table" }>;
type Text = Extract<InputPage, { readonly kind: "text" }>;
type Mark = InputPage["marks"][number];

interface InputProps extends ViewProps {
  readonly isExcerpt?: boolean;
}

export function InputView({ file, search, isExcerpt = false }: InputProps): Element {
  const { id } = file.arrival;
  const row = Math.max(Number(search.get("row")) || 0, 0);
  const sheet = search.get("sheet");
  const length = isExcerpt ? EXCERPT.rows : ROWS;
  const before = isExcerpt ? EXCERPT.before : BEFORE;
  const from = Number(search.get("from")) || Math.max(1, row - before);
  const part = useQuery<InputPage>(`/files/${id}/input`, { sheet, from, rows: length });
  const isMarked = (part.answer?.marks ?? []).some(({ column }) => column !== null);
  const isBelow = from > HEADER_ROWS && isMarked;
  const head = useQuery<InputPage>(isBelow ? `/files/${id}/input` : null, { sheet, from: 1, rows: HEADER_ROWS });
  const place = (more: Readonly<Record<string, string | null>>) =>
    hrefOf(`/files/${id}`, { view: "input", sheet, ...more });
  const to = (start: number) => go(place({ from: String(start) }));
  const find = (one: number) => go(place({ row: String(one) }));
  const toSheet = (one: string) => go(hrefOf(`/files/${id}`, { view: "input", sheet: one }));
  return html`${isExcerpt ? null : Download(id, file.arrival.name)}
    <${Loaded} of=${part}>${(shown: InputPage) => {
      if (shown.kind === "binary") return html`<p>${shown.reason}</p>`;
      const header = isBelow ? head.answer : shown;
      const rows = html`<${Rows} ...${{ shown, header, row, words: words.of(file.arrival.name) }} />`;
      if (isExcerpt) return rows;
      const first = shown.kind === "text" ? shown.lines[0]?.row : shown.rows[0]?.row;
      const sheets = shown.kind === "table" && shown.sheets.length > 1 ? Sheets(shown, toSheet) : null;
      const paging = { from, isLast: shown.isLast, to, find };
      return html`<div class="toolbar">${sheets}
          ${shown.kind === "text" ? html`<span class="detail">${words.encoding(shown.encoding)}</span>` : null}
          ${Paging(paging)}
        </div>
        ${first === undefined ? html`<p class="muted">${words.empty}</p>` : rows}`;
    }}</${Loaded}>`;
}

function Download(id: number, name: string): Element {
  return html`<p><a class="button plain small" href=${addressOf(`/files/${id}/input/file`)} download=${name}>
    ${words.download}</a></p>`;
}

function Sheets({ sheets, sheet }: Table, set: (sheet: string) => void): Content {
  const options = sheets.map((value) => ({ value, words: value }));
  return Choice({ id: "sheet", label: words.sheet, value: sheet, options, set });
}

interface PagingProps {
  readonly from: number;
  readonly isLast: boolean;
  to(from: number): void;
  find(row: number): void;
}

function Paging({ from, isLast, to, find }: PagingProps): Element {
  const open = (event: Event) => {
    event.preventDefault();
    const row = Number(new FormData(event.target as HTMLFormElement).get("row"));
    if (row > 0) find(row);
  };
  const button = (label: string, isShown: boolean, start: number) =>
    html`<button type="button" class="plain small" disabled=${!isShown} onClick=${() => to(start)}>${label}</button>`;
  return html`<div class="buttons">${button(words.earlier, from > 1, Math.max(1, from - ROWS))}
      ${button(words.later, !isLast, from + ROWS)}</div>
    <form class="inline" onSubmit=${open}><label for="row">${words.row}</label>
      <input id="row" name="row" inputmode="numeric" pattern="[0-9]*" autocomplete="off" />
      <button type="submit" class="plain small">${words.find}</button></form>`;
}

interface RowsProps {
  readonly shown: Text | Table;
  /** The first rows of the file, which name the columns; null while they are loaded. */
  readonly header: InputPage | null;
  /** The row that was asked for; 0 for none. */
  readonly row: number;
  readonly words: string;
}

function Rows({ shown, header, row, words: caption }: RowsProps): Element {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    place.current?.querySelector("tr.sought")?.scrollIntoView({ block: "nearest" });
  }, [shown, row]);
  const marks = Map.groupBy(shown.marks, (mark) => mark.row);
  const sought = (one: number) => `${one === row ? "sought" : ""}${marks.has(one) ? " marked" : ""}`.trim();
  const body =
    shown.kind === "text"
      ? shown.lines.map(
          ({ row: at, text, cut }) => html`<tr key=${at} class=${sought(at)}><th scope="row">${at}</th>
            <td><span class="line"><bdi>${Line(text, marks.get(at) ?? [], header)}</bdi></span>${
              cut > 0 ? html`<span class="detail"> ${words.cut(cut)}</span>` : null
            }${Marks(marks.get(at) ?? [])}</td></tr>`,
        )
      : shown.rows.map(({ row: at, cells }) =>
          CellRow({ at, cells, marks: marks.get(at) ?? [], header, class: sought(at) }),
        );
  const width = shown.kind === "table" ? Math.max(0, ...shown.rows.map(({ cells }) => cells.length)) : 0;
  const heads =
    shown.kind === "table"
      ? html`<thead><tr><th scope="col"><span class="hidden">${words.row}</span></th>${Array.from(
          { length: width },
          (_, at) => html`<th scope="col">${lettersOf(at)}</th>`,
        )}</tr></thead>`
      : null;
  return html`<div class="scroll input" ref=${place} tabindex="0" role="region" aria-label=${caption}>
    <table class=${shown.kind}><caption class="hidden">${caption}</caption>${heads}<tbody>${body}</tbody></table>
      </div>`;
}

/** The refused field of the line stands out, where its column is known. */
function Line(text: string, marks: readonly Mark[], header: InputPage | null): Content {
  const head = header?.kind === "text" ? header.lines.slice(0, HEADER_ROWS).map((line) => line.text) : [];
  const column = marks.find((mark) => mark.column !== null)?.column ?? null;
  const range = column === null ? null : columnIn(text, column, head);
  if (range === null) return visible(text);
  const [before, field, after] = [text.slice(0, range.from), text.slice(range.from, range.to), text.slice(range.to)];
  return html`${visible(before)}<mark>${visible(field) || " "}</mark>${visible(after)}`;
}

/** The reason of the run often repeats that of its first row, with the number of further rows. */
function Marks(given: readonly Mark[]): Content {
  const marks = given.filter(
    (one, at) => !given.some((other, before) => before < at && other.reason.startsWith(one.reason)),
  );
  if (marks.length === 0) return null;
  return html`<span class="mark-words">${marks.map(
    ({ column, reason }) =>
      html`<span>▲ ${column === null ? "" : `${TEXTS.place.column(column)}: `}<bdi>${visible(reason)}</bdi></span>`,
  )}</span>`;
}

interface CellsProps {
  readonly at: number;
  readonly cells: readonly string[];
  readonly marks: readonly Mark[];
  readonly header: InputPage | null;
  readonly class: string;
}

function CellRow({ at, cells, marks, header, class: name }: CellsProps): Element {
  const head = header?.kind === "table" ? header.rows.slice(0, HEADER_ROWS).map((row) => row.cells) : [];
  const marked = new Set(marks.map(({ column }) => (column === null ? null : cellOf(column, head))));
  return html`<tr key=${at} class=${name}><th scope="row">${at}</th>${cells.map(
    (cell, index) =>
      html`<td>${
        marked.has(index)
          ? html`<mark><bdi>${visible(cell) || " "}</bdi>
        </mark>`
          : html`<bdi>${visible(cell)}</bdi>`
      }${index === cells.length - 1 ? Marks(marks) : null}</td>`,
  )}</tr>`;
}
