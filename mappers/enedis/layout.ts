/**
 * Rows of an Enedis export: heads that describe the point of delivery, headers of columns, and the meaning of each
 * column.
 */
import type { CellValue } from "headgate/mapper";

export type Cells = readonly CellValue[];

export function textAt(cells: Cells, at: number | undefined): string {
  const cell = at === undefined ? null : cells[at];
  if (cell === null || cell === undefined) return "";
  return (typeof cell === "object" ? cell.local : String(cell)).trim();
}

/** Accents in names vary from one export to the next. */
export function plain(text: string): string {
  return text
    .normalize("NFD")
    .replace(/\p{Mn}/gu, "")
    .replace(/\s*:\s*$/, "")
    .trim()
    .toLowerCase();
}

/** Facts of a head about the values below it. */
export interface Head {
  readonly prm: string;
  readonly type: string;
  readonly physical: string;
  readonly business: string;
  readonly stage: string;
  readonly unit: string;
  /** Minutes; 0 when not given. */
  readonly step: number;
  /** First and last day of the period. */
  readonly from: string;
  readonly to: string;
}

export const NO_HEAD: Head = {
  prm: "",
  type: "",
  physical: "",
  business: "",
  stage: "",
  unit: "",
  step: 0,
  from: "",
  to: "",
};

type HeadField = keyof Head;

const HEAD_FIELDS: Readonly<Record<string, HeadField>> = {
  "identifiant prm": "prm",
  prm: "prm",
  "point reference mesure (prm)": "prm",
  "type de donnees": "type",
  "type de comptage": "type",
  "grandeur physique": "physical",
  "grandeur metier": "business",
  "etape metier": "stage",
  "statut demande": "stage",
  unite: "unit",
  pas: "step",
  "pas en minutes": "step",
  "date de debut": "from",
  "date de fin": "to",
};

const TAGS: Readonly<Record<string, string>> = {
  nature: "nature",
  "statut de la mesure": "status",
  "type de releve": "reading",
  "indice de vraisemblance": "plausibility",
  "indice de qualite": "plausibility",
  "etat complementaire": "state",
  "etat compl.": "state",
  ec: "state",
  "type de correction": "correction",
  tc: "correction",
  "mode de calcul": "calculation",
};

/** Columns of the rows below a header. */
export interface Layout {
  readonly date: number;
  /** Column of the time, when date and time are separate. */
  readonly time: number | undefined;
  /** Whether the rows are days. */
  readonly isDay: boolean;
  /** Meaning of the stamps by the header: ends or starts of steps. */
  readonly stamp: "end" | "start" | undefined;
  readonly values: readonly { readonly at: number; readonly name: string; readonly unit: string }[];
  readonly head: readonly { readonly at: number; readonly field: HeadField }[];
  readonly tags: readonly { readonly at: number; readonly name: string }[];
  readonly width: number;
}

const DATE = /^(?:horodate\b|date de la mesure$|date$)/;
const INDEX = /^ea[sip] [fdt]\d*$/;
const VALUE = /^(?:valeur|puissance moyenne|energie|consommation|production)\b/;

/** The layout that a row declares, or undefined when it is not a header of columns. */
export function layoutOf(cells: Cells): Layout | undefined {
  const names = cells.map((_, at) => plain(textAt(cells, at)));
  const date = names.findIndex((name) => DATE.test(name));
  if (date === -1) return undefined;
  const values = names.flatMap((name, at) => {
    if (!INDEX.test(name) && !(VALUE.test(name) && at !== date)) return [];
    return [{ at, name: textAt(cells, at), unit: /\((?:en )?([^)]+)\)/i.exec(textAt(cells, at))?.[1] ?? "" }];
  });
  if (values.length === 0) return undefined;
  const time = names.indexOf("heure de la mesure");
  return {
    date,
    time: time === -1 ? undefined : time,
    isDay: names[date] === "date",
    stamp: stampOf(names[date] ?? ""),
    values,
    head: fieldsIn(names, HEAD_FIELDS).map(({ at, found }) => ({ at, field: found })),
    tags: fieldsIn(names, TAGS).map(({ at, found }) => ({ at, name: found })),
    width: names.length,
  };
}

/** Some headers say it: `horodate ISO fin de pas`. */
function stampOf(name: string): Layout["stamp"] {
  if (/\bfin d[eu] pas\b/.test(name)) return "end";
  return /\bdebut d[eu] pas\b/.test(name) ? "start" : undefined;
}

function fieldsIn<Found>(
  names: readonly string[],
  known: Readonly<Record<string, Found>>,
): { readonly at: number; readonly found: Found }[] {
  return names.flatMap((name, at) => {
    const found = Object.hasOwn(known, name) ? known[name] : undefined;
    return found === undefined ? [] : [{ at, found }];
  });
}

/** A row with the names of a head: names alone, with the values in the next row, or names and values alternating. */
export function headNames(cells: Cells): readonly (HeadField | undefined)[] | undefined {
  const fields = cells.map((_, at) => {
    const name = plain(textAt(cells, at));
    return Object.hasOwn(HEAD_FIELDS, name) ? HEAD_FIELDS[name] : undefined;
  });
  return fields.some((field) => field === "prm" || field === "type") ? fields : undefined;
}

/** The head of a row of alternating names and values; undefined when its values are in the next row. */
export function headInline(cells: Cells, fields: readonly (HeadField | undefined)[]): Head | undefined {
  if (fields[0] === undefined || fields[1] !== undefined) return undefined;
  let head = NO_HEAD;
  fields.forEach((field, at) => {
    if (field !== undefined) head = withField(head, field, textAt(cells, at + 1));
  });
  return head;
}

const WORDS: Readonly<Record<string, string>> = {
  consommation: "CONS",
  production: "PROD",
  "energie active": "EA",
  "energie reactive inductive": "ERI",
  "energie reactive capacitive": "ERC",
  "puissance maximale atteinte": "PMA",
  "puissance active": "PA",
  tension: "E",
};

function wordOf(text: string): string {
  const word = plain(text);
  return Object.hasOwn(WORDS, word) ? (WORDS[word] ?? text) : text;
}

/** Labels of the customer's account become the codes of the professional exports; the step becomes minutes. */
export function withField(head: Head, field: HeadField, text: string): Head {
  if (text === "") return head;
  if (field === "step") return { ...head, step: minutes(text) };
  // The label of the account's daily export contains both: "Consommation Quotidienne".
  if (field === "type" && head.business === "") {
    const business = /^(consommation|production)\b/.exec(plain(text))?.[1];
    if (business !== undefined)
      return { ...head, type: text, business: WORDS[business] ?? business, physical: head.physical || "EA" };
  }
  return {
    ...head,
    [field]: field === "business" || field === "physical" ? wordOf(text) : text,
  };
}

/** `30`, `PT30M`, `PT1H`, `P1D`; 0 for any other text. */
function minutes(text: string): number {
  const match = /^(?:(\d+)|PT(\d+)M|PT(\d+)H|P(\d+)D)$/.exec(text);
  if (match === null) return 0;
  const [, plainMinutes, minute, hour, day] = match;
  return Number(plainMinutes ?? minute ?? 0) + Number(hour ?? 0) * 60 + Number(day ?? 0) * 1440;
}
