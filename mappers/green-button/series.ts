/** A meter reading with its reading type: target, unit, power of ten and defaults of the readings below it. */
import { FileError, RowError, type Target, type XmlElement } from "headgate/mapper";
import type { Identifiers } from "../_formats/target.ts";
import { COMMODITIES, CURRENCY_KIND, FLOWS, KINDS, named, UNITS } from "./codes.ts";
import type { Entry, Node, Tree } from "./feed.ts";

export interface Series {
  readonly target: Target;
  /** Symbol of the unit of `value × 10^power`. */
  readonly unit: string;
  readonly power: number;
  /** Seconds; 0 when the reading type names none. */
  readonly intervalLength: number;
  readonly defaultQuality: string;
  readonly meterReading: Node;
}

/** Result of the search for the series of an interval block. */
export type Found = Series | "money" | "unknown";

export class SeriesFinder {
  readonly #tree: Tree;
  readonly #targetOf: (values: Identifiers) => Target;
  readonly #known = new Map<Node, Found>();
  readonly #takenBy = new Map<Target, Node>();

  constructor(tree: Tree, targetOf: (values: Identifiers) => Target) {
    this.#tree = tree;
    this.#targetOf = targetOf;
  }

  /**
   * The series of an interval block; `unknown` while its meter reading or reading type was not read. With `atEnd`, when
   * all entries were read, a feed with a single one of a kind needs no links. Throws a `RowError` for a series that
   * cannot be pushed.
   */
  find(block: Entry, atEnd: boolean): Found {
    const { meterReadings, readingTypes, usagePoints } = this.#tree;
    const meterReading = meterReadings.above(block) ?? (atEnd ? meterReadings.only : undefined);
    if (meterReading === undefined) return "unknown";
    const known = this.#known.get(meterReading);
    if (known !== undefined) return known;
    const type = this.#tree.readingTypeOf(meterReading) ?? (atEnd ? readingTypes.only : undefined);
    const usagePoint = usagePoints.above(meterReading.entry) ?? (atEnd ? usagePoints.only : undefined);
    // A feed may lack the usage point, or give it later.
    if (type === undefined || (usagePoint === undefined && !atEnd)) return "unknown";
    const found = this.#make(meterReading, type.resource, usagePoint);
    this.#known.set(meterReading, found);
    return found;
  }

  #make(meterReading: Node, type: XmlElement, usagePoint: Node | undefined): Found {
    const code = (name: string) => type.textOf(name) ?? "0";
    if (code("kind") === CURRENCY_KIND) return "money";
    const uom = code("uom");
    const unit = Object.hasOwn(UNITS, uom) ? UNITS[uom] : undefined;
    if (unit === undefined)
      throw new RowError(`the unit of measure ${uom} of the reading type at line ${type.row} is not known`, {
        column: "uom",
        text: uom,
      });
    const target = this.#targetOf({
      usagePoint: usagePoint?.entry.id ?? "",
      usagePointTitle: usagePoint?.entry.title ?? "",
      usagePointKey: keyOf(usagePoint),
      meterReading: keyOf(meterReading),
      meterReadingTitle: meterReading.entry.title,
      commodity: named(COMMODITIES, code("commodity")),
      kind: named(KINDS, code("kind")),
      flow: named(FLOWS, code("flowDirection")),
      intervalLength: code("intervalLength"),
      uom: unit,
    });
    this.#claim(target, meterReading);
    return {
      target,
      unit,
      power: integer(type, "powerOfTenMultiplier"),
      intervalLength: integer(type, "intervalLength"),
      defaultQuality: code("defaultQuality"),
      meterReading,
    };
  }

  /**
   * Two meter readings of one target, such as hourly and daily sums, would overwrite each other where their dates meet.
   */
  #claim(target: Target, meterReading: Node): void {
    const other = this.#takenBy.get(target);
    if (other !== undefined)
      throw new FileError(
        `two meter readings have the same target: "${other.entry.title}" (line ` +
          `${other.entry.element.row}) and "${meterReading.entry.title}" (line ` +
          `${meterReading.entry.element.row})`,
        {
          row: meterReading.entry.element.row,
          hint:
            "Distinguish them in the setting `target`, for example by {intervalLength} or {meterReading} " +
            "in mappingConfig.",
        },
      );
    this.#takenBy.set(target, meterReading);
  }
}

/** Last segment of the entry's own link. */
function keyOf(node: Node | undefined): string {
  return node?.entry.self.split("/").at(-1) ?? "";
}

function integer(type: XmlElement, name: string): number {
  const text = type.textOf(name) ?? "0";
  if (/^[+-]?\d{1,9}$/.test(text)) return Number(text);
  throw new RowError(`${name} of the reading type is not a whole number: "${text}"`, { column: name, text });
}
