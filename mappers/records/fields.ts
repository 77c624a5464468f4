/** The record fields that settings name, as the columns of a row. */
import { type CellValue, FileError, RowError } from "headgate/mapper";
import { type Columns, nearest } from "../_declarative/columns.ts";
import type { Cells } from "../_declarative/template.ts";
import { type Path, parsePath, type RecordAt, valueAt } from "./paths.ts";

interface Field {
  readonly name: string;
  /** Number of levels to go up first. */
  readonly ups: number;
  /** Null for the name or index of the record itself. */
  readonly path: Path | null;
  wasThere: boolean;
}

export interface Fields {
  readonly columns: Columns;
  /** The row of a record. Throws a `RowError` for a field that is not a single value. */
  cells(record: RecordAt): Cells;
  /** Throws a `FileError` for a field that none of the records had: it is misspelt more often than absent. */
  check(records: number): void;
}

export function fieldColumns(optional: readonly string[]): Fields {
  const fields: Field[] = [];
  /** Names of fields of the first record, for suggestions. */
  let known: readonly string[] | undefined;

  const columns: Columns = {
    width: undefined,
    name: (at) => fields[at]?.name ?? "",
    entries: () => [],
    find(reference) {
      const name = String(reference);
      const at = fields.findIndex((field) => field.name === name);
      if (at !== -1) return at;
      fields.push(fieldOf(name));
      return fields.length - 1;
    },
  };

  return {
    columns,
    cells(record) {
      known ??= fieldNames(record);
      return fields.map((field) => cellOf(field, record));
    },
    check(records) {
      const lost = fields.find(({ name, wasThere }) => !wasThere && !optional.includes(name));
      if (records === 0 || lost === undefined) return;
      const near = nearest(lost.name, known ?? []);
      throw new FileError(`none of the ${records} records has the field ${lost.name}`, {
        column: lost.name,
        hint:
          near === undefined
            ? `The first record has: ${(known ?? []).slice(0, 20).join(", ")}. If the field may be ` +
              `absent, add it to \`optional\`.`
            : `Is ${JSON.stringify(near)} meant? If the field may be absent, add it to \`optional\`.`,
      });
    },
  };
}

/** `../` goes up to the enclosing value, `.` is the record itself, `@` its name or index. */
function fieldOf(name: string): Field {
  const [, climb = "", rest = ""] = /^((?:\.\.\/)*)(.*)$/s.exec(name) ?? [];
  const ups = climb.length / 3;
  if (rest === "@") return { name, ups, path: null, wasThere: false };
  const path = rest === "." ? [] : parsePath(rest);
  if (typeof path === "string" || path.includes(null) || rest.startsWith("$"))
    throw new FileError(`"${name}" is no path of one field`, {
      column: name,
      hint:
        "Fields are named from the record, such as meter.id, values[0], ../serial, `.` for the record " +
        "itself, or `@` for its name or index.",
    });
  return { name, ups, path, wasThere: false };
}

function cellOf(field: Field, record: RecordAt): CellValue {
  let at: RecordAt | undefined = record;
  for (let ups = field.ups; ups > 0; ups -= 1) at = at?.up;
  if (at === undefined) return null;
  let value: unknown = field.path === null ? at.key : valueAt(at.value, field.path);
  if (value === undefined) return null;
  field.wasThere = true;
  if (record.along !== undefined && Array.isArray(value)) value = itemOf(value, record.along, field.name);
  if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return value;
  if (typeof value === "bigint") return String(value);
  throw new RowError(`${field.name} is ${Array.isArray(value) ? "an array" : "an object"}, not a single value`, {
    column: field.name,
    hint: "Name a field inside it, such as `values[0]` or `meter.id`; for a reading each of its items set `each`.",
  });
}

function itemOf(array: readonly unknown[], { index, length }: NonNullable<RecordAt["along"]>, name: string): unknown {
  if (array.length === length) return array[index] ?? null;
  throw new RowError(`the array ${name} has ${array.length} items, and the one of \`zip\` has ${length}`, {
    column: name,
  });
}

/** Paths of the fields of a record, and of the enclosing ones. */
function fieldNames(record: RecordAt): readonly string[] {
  const names: string[] = [];
  let climb = "";
  for (let at: RecordAt | undefined = record; at !== undefined; at = at.up) {
    collect(at.value, "", 3, (name) => names.push(climb + name));
    climb += "../";
  }
  return names;
}

function collect(value: unknown, before: string, depth: number, add: (name: string) => void): void {
  if (typeof value !== "object" || value === null || depth === 0) return;
  for (const [key, inner] of Object.entries(value).slice(0, 50)) {
    const name = Array.isArray(value) ? `${before}[${key}]` : before === "" ? key : `${before}.${key}`;
    add(name);
    collect(inner, name, depth - 1, add);
  }
}
