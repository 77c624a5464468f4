/**
 * The description of its sheets in a workbook (ECMA-376, part 1, 18.2 and 18.8): names, parts, number
 * formats, and the texts of its cells.
 */
import { PART_BYTES_MAX, PART_ELEMENTS_MAX, SHARED_PART_BYTES_MAX } from "./limits.ts";
import { UnreadableError } from "./row-error.ts";
import { isDateFormat, STANDARD_DATE_FORMATS } from "./serial-date.ts";
import type { WorkbookArchive } from "./workbook-archive.ts";
import { damagedPart, PartParser, SAVE_AGAIN } from "./xlsx-part.ts";
import type { SheetBook } from "./xlsx-sheet.ts";
import { SharedStrings } from "./xlsx-strings.ts";

export interface BookSheet {
  readonly name: string;
  readonly relation: string | undefined;
  /** `hidden` and `veryHidden` sheets are not shown to people. */
  readonly state: string | undefined;
}

export interface Book {
  readonly sheets: readonly BookSheet[];
  /** Name of the part of a sheet. */
  partOf(sheet: BookSheet): string | undefined;
  /** Reads the styles and texts that the cells of any sheet refer to. */
  forCells(): Promise<SheetBook>;
}

interface Relation {
  readonly id: string | undefined;
  readonly type: string;
  readonly target: string;
}

type Attributes = Readonly<Record<string, string>>;

const WORKBOOK = "xl/workbook.xml";

export async function openBook(archive: WorkbookArchive): Promise<Book> {
  if (!archive.has(WORKBOOK))
    throw new UnreadableError("the file is an archive, but not a workbook (.xlsx)", { hint: SAVE_AGAIN });
  const relations = await readRelations(archive);
  const { sheets, is1904 } = await readWorkbook(archive);
  const partByType = (type: string) =>
    partName(relations.find((one) => one.type.endsWith(`/${type}`))?.target ?? `${type}.xml`);
  return {
    sheets,
    partOf(sheet) {
      const relation = relations.find(({ id }) => id !== undefined && id === sheet.relation);
      return relation === undefined ? undefined : partName(relation.target);
    },
    async forCells() {
      const styles = partByType("styles");
      const formats = archive.has(styles) ? await readDateFormats(archive, styles) : [];
      const strings = partByType("sharedStrings");
      return {
        strings: await SharedStrings.read(strings, archive.text(strings, SHARED_PART_BYTES_MAX)),
        is1904,
        dateFormat: (style) => formats[style],
      };
    },
  };
}

async function readRelations(archive: WorkbookArchive): Promise<readonly Relation[]> {
  const relations: Relation[] = [];
  await readElements(archive, "xl/_rels/workbook.xml.rels", (path, { Id, Type = "", Target = "" }) => {
    if (path === "Relationships/Relationship") relations.push({ id: Id, type: Type, target: Target });
  });
  return relations;
}

async function readWorkbook(archive: WorkbookArchive): Promise<{ sheets: BookSheet[]; is1904: boolean }> {
  const sheets: BookSheet[] = [];
  let is1904 = false;
  await readElements(archive, WORKBOOK, (path, attributes) => {
    if (path === "workbook/sheets/sheet") {
      const { name = "", state } = attributes;
      sheets.push({ name, state, relation: relationIn(attributes) });
    } else if (path === "workbook/workbookPr")
      is1904 = attributes["date1904"] === "1" || attributes["date1904"] === "true";
  });
  return { sheets, is1904 };
}

/** The prefix of the attribute may vary; usually it is `r:id`. */
function relationIn(attributes: Attributes): string | undefined {
  return Object.entries(attributes).find(([name]) => name.endsWith(":id"))?.[1];
}

/** Returns the date formats by the number of the style; other formats are left out. */
async function readDateFormats(archive: WorkbookArchive, part: string): Promise<readonly (string | undefined)[]> {
  const formats = new Map<string, string | undefined>();
  const styles: (string | undefined)[] = [];
  await readElements(archive, part, (path, { numFmtId = "", formatCode }) => {
    if (path === "styleSheet/numFmts/numFmt") formats.set(numFmtId, formatCode);
    else if (path === "styleSheet/cellXfs/xf") styles.push(numFmtId);
  });
  return styles.map((id = "") => {
    const format = formats.get(id) ?? STANDARD_DATE_FORMATS[id];
    return isDateFormat(format) ? format : undefined;
  });
}

/** Calls the handler for each element of a part that is read into memory, with the names from the root. */
async function readElements(
  archive: WorkbookArchive,
  part: string,
  element: (path: string, attributes: Attributes) => void,
): Promise<void> {
  const names: string[] = [];
  let elements = 0;
  const parser = new PartParser(part, {
    open(name, attributes) {
      elements += 1;
      if (elements > PART_ELEMENTS_MAX) throw damagedPart(part, `it holds more than ${PART_ELEMENTS_MAX} elements`);
      names.push(name);
      if (names.length <= DEPTH_READ) element(names.join("/"), attributes);
    },
    close() {
      names.pop();
    },
    text() {},
  });
  for await (const chunk of archive.text(part, PART_BYTES_MAX)) parser.write(chunk);
  parser.end();
}

/** Elements deeper than this are ignored. */
const DEPTH_READ = 3;

/** Targets are relative to `xl/`, or absolute. */
function partName(target: string): string {
  return target.startsWith("/") ? target.slice(1) : `xl/${target}`;
}
