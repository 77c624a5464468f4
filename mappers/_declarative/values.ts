/** Values of one quantity: empty cells, number format, unit, tags and version. */
import { type CellValue, type MapContext, RowError, type Target } from "headgate/mapper";
import { inColumn } from "./faults.ts";
import type { Layout, TargetSettings, ValueSettings } from "./settings.ts";
import { bindStatus, type StatusReader, type Tags } from "./statuses.ts";
import { bindTarget } from "./targets.ts";
import { bindTemplate, type Cells, type Scope } from "./template.ts";

export type Tools = Pick<MapContext<unknown>, "emit" | "reject" | "time" | "number" | "unit" | "log">;

/** Counts of values that the settings leave out; logged at the end, so that the omission is not silent. */
export interface Counts {
  missing: number;
  dropped: number;
}

/** A quantity of a row, bound to the file's columns. Every function throws `RowError`s. */
export interface Quantity {
  readonly target: (cells: Cells) => Target;
  /** Whether the lookup table has the row's key; undefined when no setting needs it. */
  readonly isKnown: ((cells: Cells) => boolean) | undefined;
  /** Undefined for a cell without a value. `at` is the cell's position. */
  value(cells: Cells, at: number): number | undefined;
  readonly unit: ((cells: Cells) => string) | undefined;
  readonly tags: ((cells: Cells) => Tags | undefined) | undefined;
  readonly version: ((cells: Cells) => string) | undefined;
  readonly status: StatusReader | undefined;
}

type Marks = Pick<Layout, "decimal" | "group">;

export function bindQuantity(
  tools: Tools,
  marks: Marks,
  settings: ValueSettings,
  target: TargetSettings,
  scope: Scope,
): Quantity {
  const { unit, convertTo, version } = settings;
  return {
    target: bindTarget(target, scope),
    value: bindValue(tools, marks, settings, scope),
    isKnown: bindKnown(scope),
    unit: (convertTo ?? unit) === undefined ? undefined : bindTemplate(convertTo ?? unit ?? "", scope).read,
    tags: bindTags(settings.tags, scope),
    version: version === undefined ? undefined : bindTemplate(version, scope).read,
    status: bindStatus(settings.status, scope),
  };
}

type ReadValue = (cells: Cells, at: number) => number | undefined;

function bindValue(
  { number, unit }: Tools,
  { decimal, group }: Marks,
  settings: ValueSettings,
  scope: Scope,
): ReadValue {
  const missing = new Set((settings.missing ?? []).map((text) => text.trim()));
  // A typed number stands for none where it is written as one of the texts.
  const numbers = new Set([...missing].filter((text) => String(Number(text)) === text).map(Number));
  const options = group === undefined ? { decimal } : { decimal, group };
  const { convertTo, scale } = settings;
  const hint = missing.has("")
    ? undefined
    : 'If empty cells stand for no value, `missing: [""]` in the settings leaves them out.';

  function read(cell: CellValue | undefined): number | undefined {
    if (typeof cell === "number") return numbers.has(cell) ? undefined : cell;
    if (cell === null || cell === undefined || typeof cell === "string") {
      const text = cell?.trim() ?? "";
      if (missing.has(text)) return undefined;
      if (text === "") throw new RowError("the value is empty", hint === undefined ? {} : { hint });
      return number(text, options);
    }
    const text = typeof cell === "object" ? cell.local : String(cell);
    if (missing.has(text)) return undefined;
    throw new RowError(`the value is ${typeof cell === "object" ? "the date " : ""}${text}, not a number`, {
      text,
    });
  }

  const scaleOf = scale === undefined ? undefined : bindScale(scale, (text) => number(text, options), scope);
  const unitOf = settings.unit === undefined ? undefined : bindTemplate(settings.unit, scope);
  const wantedOf = convertTo === undefined ? undefined : bindTemplate(convertTo, scope);
  // 11120 * 0.001 is 11.120000000000001, and 11120 / 1000 is 11.12.
  const divisor = typeof scale === "number" ? Math.round(1 / scale) : Number.NaN;
  const divides = 1 / divisor === scale;
  return (cells, at) => {
    let value: number | undefined;
    try {
      value = read(cells[at]);
      if (value !== undefined && unitOf !== undefined && wantedOf !== undefined)
        value = unit(value, unitOf.read(cells), wantedOf.read(cells));
    } catch (thrown) {
      throw inColumn(thrown, scope.columns.name(at));
    }
    if (value === undefined || scaleOf === undefined) return value;
    return divides ? value / divisor : value * scaleOf(cells);
  };
}

function bindScale(scale: number | string, number: (text: string) => number, scope: Scope): (cells: Cells) => number {
  if (typeof scale === "number") return () => scale;
  const { only, uses, read } = bindTemplate(scale, scope);
  return (cells) => {
    // A factor in a cell of its own may be a typed number with a fraction, which is not text.
    const cell = only === undefined ? undefined : cells[only];
    if (typeof cell === "number") return cell;
    try {
      return number(read(cells));
    } catch (thrown) {
      throw inColumn(thrown, uses.map(scope.columns.name).join(" and ") || "scale");
    }
  };
}

function bindTags(settings: ValueSettings["tags"], scope: Scope): ((cells: Cells) => Tags | undefined) | undefined {
  const fields = Object.entries(settings ?? {}).map(([name, text]) => ({
    name,
    ...bindTemplate(text, scope),
  }));
  if (fields.length === 0) return undefined;
  let latestKey: string | undefined;
  let latest: Tags | undefined;
  return (cells) => {
    const texts = fields.map(({ read }) => read(cells));
    const key = texts.join("\n");
    if (key === latestKey) return latest;
    const entries = fields.flatMap(({ name }, at) => (texts[at] ? [[name, texts[at]] as const] : []));
    latestKey = key;
    latest = entries.length === 0 ? undefined : Object.freeze(Object.fromEntries(entries));
    return latest;
  };
}

/** Whether the table has a row's key, where rows without one are dropped. */
function bindKnown(scope: Scope): ((cells: Cells) => boolean) | undefined {
  const { table } = scope;
  if (table === undefined || table.settings.unknown === "reject") return undefined;
  const key = bindTemplate(table.settings.key, scope);
  return (cells) => table.rows.get(key.read(cells)) !== undefined;
}
