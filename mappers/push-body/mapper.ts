/**
 * The body of a push (specification, *Push endpoints*), as the gateway's own HTTP intake accepts it at `POST
 * /api/data`.
 */
import { defineMapper, FileError, type Reading, RowError, type Target, z } from "headgate/mapper";

const settings = z.strictObject({
  timeZone: z
    .string()
    .min(1)
    .optional()
    .describe("Zone of dates that have no designator, such as Europe/Brussels. No default."),
  dst: z
    .enum(["reject", "earlier", "later", "byOrder"])
    .default("later")
    .describe("What such a date means in the hour that daylight saving repeats; the service takes the later."),
});

/** The order in which the service checks them. */
const IDENTIFIERS = ["variableId", "sourceId", "sourceSerialNumber", "sourceEan", "sourceName", "meterNumber"] as const;
const SELECTORS = ["mappingConfig", "variableTypeId"] as const;
const DESIGNATOR = /(?:[Zz]|[+-]\d\d(?::?\d\d)?)\s*$/;
const DATE_ALONE = /^\d{4}-\d\d-\d\d$/;

type Fields = ReadonlyMap<string, unknown>;
type Tags = Readonly<Record<string, string>>;

export default defineMapper({
  name: "push-body",
  summary: "The body of a push: a JSON array of elements, as POST /api/data takes it",
  version: "1.0.0",
  sourceZone: true,
  settings,

  async map({ file, settings, emit, reject, time }) {
    const { timeZone, dst } = settings;

    function instantOf(value: unknown, series: string): Reading["date"] {
      const text = DATE_ALONE.test(String(value)) ? `${value}T00:00:00` : String(value);
      if (DESIGNATOR.test(text)) return text;
      if (timeZone === undefined)
        throw new FileError(`the date "${text}" has no designator, and no time zone is set`, {
          text,
          hint:
            "Set `timeZone` for the user of the intake that sends such dates, for example: `timeZone: " +
            "Europe/Brussels`",
        });
      return time.iso(text, timeZone, dst === "byOrder" ? { byOrder: series } : dst);
    }

    for (const [nth, element] of elementsOf(await file.text()).entries()) {
      const at = `element ${nth + 1}`;
      const fields = fieldsOf(element, at);
      const target = targetOf(fields);
      const readings = fields.get("data");
      if (!Array.isArray(readings)) throw new FileError(`${at} has no array data`);
      const version = fields.get("version");
      const batchTags = tagsOf(fields.get("tags"));
      for (const [index, one] of readings.entries()) {
        const where = `${at}, reading ${index + 1}`;
        const reading = fieldsOf(one, where);
        try {
          if (typeof target === "string") throw new RowError(target);
          emit({
            target,
            date: instantOf(reading.get("date"), JSON.stringify(target)),
            value: reading.get("value") as number,
            version: (reading.get("version") || version || undefined) as string | undefined,
            tags: tagsOf(reading.get("tags")),
            batchTags,
            at: { row: nth + 1, column: `data[${index}]` },
          });
        } catch (thrown) {
          if (!(thrown instanceof RowError)) throw thrown;
          reject({ row: nth + 1, column: `data[${index}]` }, thrown.message);
        }
      }
    }
  },
});

function elementsOf(text: string): readonly unknown[] {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    throw new FileError(`the body is not valid JSON: ${thrown.message}`);
  }
  if (Array.isArray(body)) return body;
  throw new FileError("the body is no array of elements");
}

/** Fields by their names in lower case, since the service matches names so; nulls are ignored. */
function fieldsOf(value: unknown, where: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new FileError(`${where} is not an object`);
  return new Map(
    Object.entries(value).flatMap(([name, field]) => (field === null ? [] : [[name.toLowerCase(), field]])),
  );
}

/** The target, or why the element names no variable: the service would accept its readings and discard them. */
function targetOf(fields: Fields): Target | string {
  const identifier = IDENTIFIERS.find((name) => fields.has(name.toLowerCase()));
  if (identifier === undefined) return "the element names no variable and no source";
  const value = fields.get(identifier.toLowerCase());
  if (identifier === "variableId") return { variableId: value } as Target;
  const selectors = SELECTORS.filter((name) => fields.has(name.toLowerCase()));
  if (selectors.length === 0) return `${identifier} needs mappingConfig or variableTypeId beside it`;
  return Object.freeze(
    Object.fromEntries([[identifier, value], ...selectors.map((name) => [name, fields.get(name.toLowerCase())])]),
  ) as unknown as Target;
}

function tagsOf(value: unknown): Tags | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.fromEntries(Object.entries(value).filter(([, tag]) => tag !== null));
}
