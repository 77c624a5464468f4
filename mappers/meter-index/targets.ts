/** The target of a row: its meter, and the register of it. */
import { type CellValue, FileError, RowError, type Target } from "headgate/mapper";
import { textOf } from "../_formats/cells.ts";
import { type ColumnName, type Columns, IDENTIFIERS } from "./columns.ts";

/** Registers without a mappingConfig of their own. */
const BY_REGISTER = "{register}";
/** Targets of one file, so that they fit in memory. */
const TARGETS_MAX = 200_000;

/** Equal rows have one frozen object. `mappingConfig`: the setting. Throws a `RowError`. */
export function targetReader(
  columns: Columns,
  mappingConfig: string = BY_REGISTER,
): (cells: readonly CellValue[]) => Target {
  const made = new Map<string, Target>();
  const textIn = (cells: readonly CellValue[], column: ColumnName) =>
    columns.has(column) ? textOf(columns.cell(cells, column), columns.name(column)).trim() : "";

  function selector(cells: readonly CellValue[]): { mappingConfig: string } | { variableTypeId: number } {
    const own = textIn(cells, "mappingConfig");
    if (own !== "") return { mappingConfig: own };
    const type = textIn(cells, "variableTypeId");
    if (type !== "") return { variableTypeId: whole(type, columns.name("variableTypeId")) };
    const filled = mappingConfig.replace(/\{(register|unit)\}/g, (_, column: "register" | "unit") => {
      const text = textIn(cells, column);
      if (text !== "") return text;
      throw new RowError(`the row names no mapping_config, and its ${column} is empty`, {
        column: columns.name(column),
        hint: "A meter has several variables: mapping_config, or the register, states which one is meant.",
      });
    });
    return { mappingConfig: filled };
  }

  return (cells) => {
    const identifier = IDENTIFIERS.find((column) => textIn(cells, column) !== "");
    if (identifier === undefined) {
      const [column = ""] = IDENTIFIERS.filter((one) => columns.has(one)).map(columns.name);
      throw new RowError("the row names no meter: its identifier columns are empty", { column });
    }
    const name = columns.name(identifier);
    const text = eanOf(textIn(cells, identifier));
    const isId = identifier === "variableId" || identifier === "sourceId";
    const named = { [identifier]: isId ? whole(text, name) : text };
    const fields = identifier === "variableId" ? named : { ...named, ...selector(cells) };
    const key = JSON.stringify(fields);
    const known = made.get(key);
    if (known !== undefined) return known;
    if (made.size === TARGETS_MAX) throw new FileError(`the file names more than ${TARGETS_MAX} variables: split it`);
    const target = Object.freeze(fields as unknown as Target);
    made.set(key, target);
    return target;
  };
}

/** Some exports write codes as formulas (`="541448…"`), which keeps spreadsheets from changing them. */
function eanOf(text: string): string {
  return /^="(.*)"$/.exec(text)?.[1] ?? text;
}

function whole(text: string, column: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new RowError(`"${text}" is not a whole number`, { column, text });
}
