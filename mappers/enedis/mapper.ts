/** Exports of Enedis, the French distribution grid operator: load curves, daily values, indexes. */
import { type CellValue, defineMapper, FileError, type MapperFile, RowError } from "headgate/mapper";
import { targetMaker } from "../_formats/target.ts";
import { unitConverter } from "../_formats/units.ts";
import {
  type Cells,
  type Head,
  headInline,
  headNames,
  type Layout,
  layoutOf,
  NO_HEAD,
  plain,
  textAt,
  withField,
} from "./layout.ts";
import { settings } from "./settings.ts";
import { Values } from "./values.ts";

type State =
  /** Between sections: the next head or header is expected. */
  | { readonly kind: "head"; readonly names: ReturnType<typeof headNames> }
  | { readonly kind: "values"; readonly layout: Layout }
  /** The calendar of the supplier, which follows indexes. */
  | { readonly kind: "calendar" };

export default defineMapper({
  name: "enedis",
  summary: "Enedis exports (France): load curves, daily values and indexes of a point of delivery",
  version: "1.0.0",
  sourceZone: true,
  conflicts: "refuse",
  settings,

  async map({ file, settings, emit, eachRow, number, time, unit, finding }) {
    const isSheet = await isArchive(file);
    const values = new Values({
      isSheet,
      settings,
      emit,
      number,
      time,
      targetOf: targetMaker(settings.target, settings.rename),
      converter: unitConverter(settings.units, unit),
    });
    const none: Head = { ...NO_HEAD, prm: settings.prm ?? "" };
    let head = none;
    let state: State = { kind: "head", names: undefined };
    let layouts = 0;
    let calendarRows = 0;

    function takeRow(cells: Cells): void {
      const first = plain(textAt(cells, 0));
      if (cells.every((_, at) => textAt(cells, at) === "")) return;
      const layout = layoutOf(cells);
      if (layout !== undefined) {
        layouts += 1;
        // Rows that name their own point of delivery do not use a head above.
        if (layout.head.some(({ field }) => field === "prm")) head = none;
        state = { kind: "values", layout };
        return;
      }
      if (first === "periode") {
        state = { kind: "calendar" };
        return;
      }
      const names = headNames(cells);
      if (names !== undefined && first !== "") {
        const inline = headInline(cells, names);
        head = inline ?? none;
        state = { kind: "head", names: inline === undefined ? names : undefined };
        return;
      }
      if (state.kind === "values") head = values.take(cells, state.layout, head);
      else if (state.kind === "head" && state.names !== undefined) {
        state.names.forEach((field, at) => {
          if (field !== undefined) head = withField(head, field, textAt(cells, at));
        });
        state = { kind: "head", names: undefined };
      } else if (state.kind === "head")
        throw new RowError("the row belongs to no section that is known", {
          column: "column 1",
          text: textAt(cells, 0),
          hint: "Sections begin with a row such as Identifiant PRM;…, then Horodate;Valeur.",
        });
      else calendarRows += 1;
    }

    if (isSheet) await eachRow<readonly CellValue[]>(file.xlsx(), takeRow);
    else
      await eachRow<Cells>(
        file.csv({ delimiter: ";", encoding: settings.encoding, lineEnd: settings.lineEnd }),
        takeRow,
      );
    if (layouts === 0)
      throw new FileError("the file has no header with Horodate (or Date) and Valeur, so it is no export of Enedis", {
        hint: "Expected is a text file with semicolons, or a workbook, as the customer's account or SGE writes it.",
      });
    values.finish();
    if (calendarRows > 0)
      finding({ kind: "calendar", message: "rows of the calendar of tariffs were left out", count: calendarRows });
    if (values.missing > 0)
      finding({ kind: "missing", message: "steps without a value were left out", count: values.missing });
  },
});

/** Workbooks are ZIP archives, whatever their name. */
async function isArchive(file: MapperFile): Promise<boolean> {
  for await (const bytes of file.bytes())
    return bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;
  return false;
}
