/** Columns by their names in English, French and Dutch. */
import { type CellValue, FileError } from "headgate/mapper";

const NAMES = {
  variableId: ["variable id"],
  sourceId: ["source id"],
  sourceSerialNumber: ["source serial number", "serial number", "numero de serie", "serienummer"],
  sourceEan: ["source ean", "ean", "ean number", "ean code", "code ean", "source ean number"],
  meterNumber: ["meter number", "source meter number", "meter", "numero de compteur", "compteur", "meternummer"],
  sourceName: ["source name"],
  mappingConfig: ["mapping config"],
  variableTypeId: ["variable type id"],
  register: ["register", "registre"],
  unit: ["unit", "unite", "eenheid"],
  date: ["date", "reading date", "index date", "timestamp", "datum", "date de releve", "opnamedatum"],
  time: ["time", "heure", "tijd", "tijdstip"],
  index: ["index", "meter index", "index value", "reading", "value", "meterstand", "stand", "releve"],
  event: ["event", "event type", "evenement"],
  quality: ["quality", "index type", "status", "statut"],
  comment: ["comment", "remark", "commentaire", "remarque", "opmerking"],
} as const;

export type ColumnName = keyof typeof NAMES;
export const COLUMN_NAMES = Object.keys(NAMES) as [ColumnName, ...ColumnName[]];

/** In order of preference when a row fills several: the narrowest first. */
export const IDENTIFIERS = [
  "variableId",
  "sourceId",
  "sourceSerialNumber",
  "sourceEan",
  "meterNumber",
  "sourceName",
] as const;

export interface Columns {
  readonly width: number;
  has(column: ColumnName): boolean;
  /** The name in the file, for errors. */
  name(column: ColumnName): string;
  cell(cells: readonly CellValue[], column: ColumnName): CellValue;
}

/** Without accents, case, and the marks between words. */
function plain(text: string): string {
  return text
    .normalize("NFD")
    .replace(/\p{Mn}/gu, "")
    .replace(/[\s_.-]+/g, "")
    .toLowerCase();
}

/** Throws a `FileError` that names missing and repeated columns. `mappingConfig`: the setting. */
export function findColumns(
  header: readonly CellValue[],
  own: Readonly<Partial<Record<ColumnName, string>>>,
  mappingConfig: string | undefined,
): Columns {
  const texts = header.map((cell) => (typeof cell === "object" ? "" : String(cell).trim()));
  const names = texts.map(plain);
  const places = new Map<ColumnName, number>();
  for (const column of COLUMN_NAMES) {
    const wanted = (own[column] === undefined ? NAMES[column] : [own[column]]).map(plain);
    const [at, second] = names.flatMap((name, place) => (wanted.includes(name) ? [place] : []));
    if (second !== undefined)
      throw new FileError(`the header names the ${column} twice: ${texts[at ?? 0]} and ${texts[second]}`, {
        column: texts[second] ?? column,
        hint: "Name the one that counts in the setting `columns` of the trigger's metadata.",
      });
    if (at !== undefined) places.set(column, at);
  }
  requireColumns(places, texts, mappingConfig);
  return {
    width: texts.length,
    has: (column) => places.has(column),
    name: (column) => texts[places.get(column) ?? -1] ?? NAMES[column][0],
    cell: (cells, column) => cells[places.get(column) ?? -1] ?? null,
  };
}

function requireColumns(
  places: ReadonlyMap<ColumnName, number>,
  texts: readonly string[],
  mappingConfig: string | undefined,
): void {
  const identifiers = IDENTIFIERS.filter((column) => places.has(column));
  const needsSelector = identifiers.some((column) => column !== "variableId") && !places.has("variableId");
  const hasSelector = places.has("mappingConfig") || places.has("variableTypeId") || places.has("register");
  const missing = [
    places.has("date") ? [] : "date",
    places.has("index") ? [] : "index",
    identifiers.length > 0 ? [] : "a meter (meter_number, ean, source_serial_number, source_name or variable_id)",
    needsSelector && !hasSelector && mappingConfig === undefined ? "mapping_config or register" : [],
  ].flat();
  if (missing.length === 0) return;
  throw new FileError(`the header lacks ${missing.join(" and ")}`, {
    text: texts.join(","),
    hint:
      `The columns found are: ${texts.join(", ")}. In the trigger's metadata, \`columns\` names them otherwise, ` +
      "`mappingConfig` gives one for all rows, and `delimiter` is that of a CSV file.",
  });
}
