/** Targets of rows: created once for each combination of their texts, and frozen, so that rows share them. */
import { RowError, type Target } from "headgate/mapper";
import { inColumn } from "./faults.ts";
import type { TargetSettings } from "./settings.ts";
import { bindTemplate, type Cells, type Scope, type Template } from "./template.ts";

export type TargetReader = (cells: Cells) => Target;

const NUMERIC: ReadonlySet<string> = new Set(["variableId", "sourceId", "variableTypeId"]);

export interface Field {
  readonly name: string;
  readonly template: Template;
}

/** The fields of the target in this file. */
export function targetFields(settings: TargetSettings, scope: Scope): readonly Field[] {
  return Object.entries(settings).flatMap(([name, text]) =>
    text === undefined ? [] : [{ name, template: bindTemplate(text, scope) }],
  );
}

export function bindTarget(settings: TargetSettings, scope: Scope): TargetReader {
  const fields = targetFields(settings, scope);
  const uses = [...new Set(fields.flatMap(({ template }) => template.uses))];
  const known = new Map<string, Target>();
  const [first] = uses;
  if (first === undefined) {
    let constant: Target | undefined;
    return (cells) => {
      constant ??= makeTarget(fields, cells, scope);
      return constant;
    };
  }
  return (cells) => {
    // Numbers and texts that look the same have different keys: only one of the two may be refused.
    let key = keyOf(cells[first]);
    for (let at = 1; at < uses.length; at += 1) key += `\n${keyOf(cells[uses[at] ?? 0])}`;
    let target = known.get(key);
    if (target === undefined) {
      target = makeTarget(fields, cells, scope);
      known.set(key, target);
    }
    return target;
  };
}

/** Columns that separate the series of the file. */
export function seriesColumns(settings: TargetSettings, scope: Scope): readonly number[] {
  return [...new Set(targetFields(settings, scope).flatMap(({ template }) => template.uses))];
}

function keyOf(cell: Cells[number] | undefined): string {
  if (typeof cell === "string") return cell;
  return cell === undefined ? "" : `\0${JSON.stringify(cell)}`;
}

function makeTarget(fields: readonly Field[], cells: Cells, { columns }: Scope): Target {
  const target: Record<string, string | number> = {};
  for (const { name, template } of fields) {
    const column = template.uses.map(columns.name).join(" and ");
    let text: string;
    try {
      text = template.read(cells);
    } catch (thrown) {
      throw column === "" ? thrown : inColumn(thrown, column);
    }
    const where = column === "" ? {} : { column };
    if (text === "") throw new RowError(`the row names no variable: its ${name} is empty`, where);
    if (!NUMERIC.has(name)) target[name] = text;
    else if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) target[name] = Number(text);
    else throw new RowError(`the ${name} "${text.slice(0, 60)}" is not a whole number`, { ...where, text });
  }
  // The settings were checked to name exactly one variable.
  return Object.freeze(target) as unknown as Target;
}
