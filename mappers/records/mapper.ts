/** JSON and NDJSON, described by settings alone. */
import { defineMapper, FileError, type JsonItem, type MapContext, RowError, z } from "headgate/mapper";
import { fileFacts, noteCounts } from "../_declarative/facts.ts";
import { bindRows } from "../_declarative/rows.ts";
import { checkLayout, layoutShape } from "../_declarative/settings.ts";
import { openTable } from "../_declarative/tables.ts";
import { eachCell } from "../_declarative/wide.ts";
import { fieldColumns } from "./fields.ts";
import { expand, parsePath, type RecordAt } from "./paths.ts";

const path = z.string().superRefine((value, check) => {
  const parsed = parsePath(value);
  if (typeof parsed === "string") check.addIssue({ code: "custom", message: parsed });
});
const rootPath = path.refine((value) => value.startsWith("$"), "it has to begin at the root, as in $.data[*]");

const { day: _, ...shape } = layoutShape;

const settings = z
  .strictObject({
    records: rootPath
      .optional()
      .describe(
        "Path of the records from the root, such as `$.data[*]` or `$.meters[*].readings[*]`; `[*]` " +
          "stands for every item, `.*` for every field. `$` is the whole document.",
      ),
    lines: z
      .boolean()
      .default(false)
      .describe("Whether every line is a document of its own (NDJSON, JSON Lines), which is then the record."),
    each: path
      .optional()
      .describe(
        "Path inside a record of the items that are one reading each, such as `readings[*]`; their " +
          "fields are named from the item, those around it by `../`.",
      ),
    zip: path
      .optional()
      .describe(
        "Field that holds an array, whose items are one reading each; other fields that hold arrays " +
          "of the same length go along item by item.",
      ),
    facts: z
      .record(z.string().min(1), rootPath)
      .optional()
      .describe("Fields elsewhere in the document, by the name that templates have for them."),
    optional: z
      .array(z.string().min(1))
      .optional()
      .describe("Fields that every record of a file may lack. Any other field that no record has is an error."),
    encoding: z.string().min(1).default("utf-8").describe("Encoding of files without a byte order mark."),
    ...shape,
  })
  .superRefine((value, check) => {
    checkLayout(value, check);
    const fault = (at: string, message: string) => check.addIssue({ code: "custom", path: [at], message });
    if ((value.records === undefined) !== value.lines)
      fault("records", "give either the path of the records, or `lines: true`");
    if (value.lines && value.facts !== undefined) fault("facts", "lines have nothing around their records");
    if (value.each !== undefined && value.zip !== undefined) fault("zip", "give either each or zip");
    value.values?.forEach(({ match }, at) => {
      if (match !== undefined)
        check.addIssue({
          code: "custom",
          path: ["values", at, "match"],
          message: "records have no header; for a reading a field use `each` with `.*`, and `{@}` for its name",
        });
    });
  });

type Context = MapContext<z.output<typeof settings>>;

export default defineMapper({
  name: "records",
  summary: "JSON and NDJSON, by settings alone: records and their fields by path, nested arrays, columns as arrays",
  version: "1.0.0",
  sourceZone: true,
  conflicts: "refuse",
  settings,

  async map(context) {
    const { file, settings } = context;
    const { encoding } = settings;
    const table = await openTable(context.lookup, settings.lookup);
    const counts = { missing: 0, dropped: 0 };
    const fields = fieldColumns(settings.optional ?? []);
    const facts = new Map([...fileFacts(file.name, settings.fileName), ...(await documentFacts(context))]);
    const take = bindRows(context, settings, { columns: fields.columns, facts, table }, counts);
    const items = settings.lines ? file.ndjson({ encoding }) : file.json({ path: settings.records ?? "$", encoding });
    let count = 0;
    await context.eachRow(items, (item) => {
      const records = expand(item, settings);
      count += records.length;
      takeRecords(context, item, records, (record) => take(fields.cells(record)));
    });
    fields.check(count);
    noteCounts(context, counts);
  },
});

/** Takes the records of an item; a faulty one does not hide others. */
function takeRecords(
  context: Context,
  item: JsonItem,
  records: readonly RecordAt[],
  take: (record: RecordAt) => void,
): void {
  eachCell(context, item, records, (record) => {
    try {
      take(record);
    } catch (thrown) {
      if (!(thrown instanceof RowError)) throw thrown;
      const { text, hint } = thrown;
      // The line number does not help in a document of one line.
      const column = [`${item.path}${record.where}`, thrown.column].filter((part) => part !== undefined).join(" ");
      throw new RowError(thrown.message, {
        column,
        ...(text === undefined ? {} : { text }),
        ...(hint === undefined ? {} : { hint }),
      });
    }
  });
}

/** Facts from elsewhere in the document, each found once. */
async function documentFacts({ file, settings }: Context): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const [name, path] of Object.entries(settings.facts ?? {})) {
    for await (const items of file.json({ path, encoding: settings.encoding })) {
      for (const { value } of items) {
        if (typeof value === "object" || (found.has(name) && found.get(name) !== String(value)))
          throw new FileError(
            typeof value === "object"
              ? `the fact ${name} at ${path} is not text or number`
              : `the fact ${name} at ${path} is there with different values`,
            { column: path },
          );
        found.set(name, String(value));
      }
    }
  }
  return found;
}
