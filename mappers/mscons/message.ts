/** One message: segments of its header, then points of delivery with products, and the quantities of these. */
import { type MapContext, RowError, SOURCE_ZONE, type Target } from "headgate/mapper";
import { inColumn } from "../_formats/columns.ts";
import { type Tags, tagKeeper } from "../_formats/tags.ts";
import type { targetMaker } from "../_formats/target.ts";
import type { Converter } from "../_formats/units.ts";
import { GOOD, qualityOf, unitSymbol } from "./codes.ts";
import { hasOffset, type Moment, readDate } from "./dates.ts";
import { component, type Segment, type Separators } from "./segments.ts";
import type { Settings } from "./settings.ts";

const UNUSABLE = "20";

export interface Tools extends Pick<MapContext<Settings>, "settings" | "emit" | "reject" | "number" | "time"> {
  readonly targetOf: ReturnType<typeof targetMaker>;
  readonly converter: Converter;
  readonly separators: Separators;
}

/**
 * Start and end, or the time of a reading, by their qualifiers (163, 164, 324; 7, 9). Dates in the zone of the source
 * are read for each target that they are of.
 */
type Dates = Map<string, Moment | ((target: Target) => Moment)>;

/** A quantity whose dates and status follow. */
interface Quantity {
  readonly segment: Segment;
  readonly target: Target;
  readonly value: number;
  readonly unit: string | undefined;
  readonly qualifier: string;
  readonly dates: Dates;
  readonly status: string[];
  refused: boolean;
}

const REFUSED = { target: { variableId: 0 }, value: Number.NaN, unit: undefined, qualifier: "" } as const;

export class Message {
  readonly #tools: Tools;
  #zone: string | undefined;
  #partners = { sender: "", receiver: "" };
  #location = "";
  #locationRank = 0;
  #device = "";
  #product = "";
  #detail = false;
  readonly #locationDates: Dates = new Map();
  readonly #productDates: Dates = new Map();
  #quantity: Quantity | undefined;
  /** Inside a product: after LIN. */
  #inProduct = false;
  unusable = 0;

  constructor(tools: Tools) {
    this.#tools = tools;
    this.#zone = tools.settings.timeZone;
  }

  /** Throws a `RowError` for a fault of the segment. */
  take(segment: Segment): void {
    switch (segment.tag) {
      case "UNS":
        this.#detail = true;
        break;
      case "NAD":
        this.#takeNameAndAddress(segment);
        break;
      case "LOC":
        this.#takeLocation(segment);
        break;
      case "RFF":
        if (component(segment, 0) === "MG") this.#device = component(segment, 0, 1);
        break;
      case "LIN":
        this.finish();
        this.#inProduct = true;
        this.#productDates.clear();
        this.#product = component(segment, 2);
        break;
      case "PIA":
        if (component(segment, 0) === "5" || this.#product === "")
          this.#product = component(segment, 1) || this.#product;
        break;
      case "QTY":
        this.#takeQuantity(segment);
        break;
      case "DTM":
        this.#takeDate(segment);
        break;
      case "STS":
        this.#quantity?.status.push(`${component(segment, 0)}:${component(segment, 2) || component(segment, 1)}`);
        break;
      case "CCI":
        this.#quantity?.status.push(component(segment, 2) || component(segment, 0));
        break;
      case "CAV":
        this.#addValue(component(segment, 0));
        break;
    }
  }

  #takeNameAndAddress(segment: Segment): void {
    const qualifier = component(segment, 0);
    const id = component(segment, 1);
    if (qualifier === "MS" || qualifier === "FR") this.#partners.sender = id;
    else if (qualifier === "MR" || qualifier === "DO") this.#partners.receiver = id;
    if (this.#detail) this.#beginPoint();
  }

  #beginPoint(): void {
    this.finish();
    this.#location = "";
    this.#locationRank = 0;
    this.#device = "";
    this.#product = "";
    this.#inProduct = false;
    this.#locationDates.clear();
    this.#productDates.clear();
  }

  /**
   * Of several locations of a point, the metering point has precedence: 172 (EDI@Energy), 90 (Ediel), else the first. A
   * location after products begins the next point.
   */
  #takeLocation(segment: Segment): void {
    if (this.#inProduct) this.#beginPoint();
    const qualifier = component(segment, 0);
    const rank = qualifier === "172" ? 3 : qualifier === "90" ? 2 : 1;
    if (rank <= this.#locationRank) return;
    this.#locationRank = rank;
    this.#location = component(segment, 1);
  }

  #takeQuantity(segment: Segment): void {
    this.finish();
    if (!this.#inProduct) throw new RowError("a quantity, and no LIN before it that names its product");
    try {
      this.#quantity = {
        ...this.#quantityOf(segment),
        segment,
        dates: new Map(),
        status: [],
        refused: false,
      };
    } catch (thrown) {
      // The following segments belong to the refused quantity, not to its product.
      this.#quantity = { ...REFUSED, segment, dates: new Map(), status: [], refused: true };
      throw thrown;
    }
  }

  #quantityOf(segment: Segment): Pick<Quantity, "target" | "value" | "unit" | "qualifier"> {
    const { settings, number, targetOf, separators } = this.#tools;
    const code = component(segment, 0, 2);
    return {
      target: targetOf({
        location: this.#location,
        product: this.#product,
        device: this.#device,
        ...this.#partners,
      }),
      value: inColumn(segment.column, component(segment, 0, 1), (text) =>
        number(text, { decimal: separators.decimal }),
      ),
      unit: code === "" ? settings.unit : unitSymbol(code),
      qualifier: component(segment, 0),
    };
  }

  #takeDate(segment: Segment): void {
    const qualifier = component(segment, 0);
    const text = component(segment, 0, 1);
    const code = component(segment, 0, 2);
    // Ediel: the offset in hours of the dates of the message.
    if (qualifier === "ZZZ" && code === "805") {
      this.#zone = offsetZone(text);
      return;
    }
    // Dates of the header describe the message as a whole.
    if (!DATES.has(qualifier) || !this.#detail) return;
    const dates = this.#quantity?.dates ?? (this.#inProduct ? this.#productDates : this.#locationDates);
    try {
      dates.set(qualifier, this.#dated(text, code));
    } catch (thrown) {
      if (this.#quantity !== undefined) this.#quantity.refused = true;
      throw thrown;
    }
  }

  #dated(text: string, code: string): Moment | ((target: Target) => Moment) {
    const zone = this.#zone;
    const { time } = this.#tools;
    if (zone !== SOURCE_ZONE || hasOffset(code)) return readDate(text, code, { zone, time });
    // Its faults are those of this segment, whatever the zone.
    readDate(text, code, { zone: "UTC", time });
    return (target) => readDate(text, code, { zone: time.zone(zone, target), time });
  }

  #addValue(value: string): void {
    const status = this.#quantity?.status;
    const last = status?.pop();
    if (last !== undefined) status?.push(`${last}=${value}`);
  }

  /** Emits the quantity whose segments are complete. */
  finish(): void {
    const quantity = this.#quantity;
    this.#quantity = undefined;
    if (quantity === undefined || quantity.refused) return;
    const { settings, emit, reject, converter } = this.#tools;
    if (quantity.qualifier === UNUSABLE && settings.unusable === "drop") {
      this.unusable += 1;
      return;
    }
    try {
      const { target, value, unit, segment } = quantity;
      emit({
        target,
        date: new Date(this.#dateOf(quantity)),
        value: unit === undefined ? value : converter.convert(value, unit),
        unit: unit === undefined ? undefined : converter.unitOf(unit),
        tags: tagsOf(quantity, settings),
        at: segment,
      });
    } catch (thrown) {
      if (!(thrown instanceof RowError)) throw thrown;
      reject(quantity.segment, {
        message: thrown.message,
        ...(thrown.hint === undefined ? {} : { hint: thrown.hint }),
      });
    }
  }

  #dateOf({ dates: own, target }: Quantity): number {
    const { settings } = this.#tools;
    for (const dates of [own, this.#productDates, this.#locationDates]) {
      const momentOf = (qualifier: string): Moment | undefined => {
        const found = dates.get(qualifier);
        return typeof found === "function" ? found(target) : found;
      };
      const period = momentOf("324");
      const start = momentOf("163")?.from ?? period?.from;
      const end = momentOf("164") ?? period;
      if (settings.stamp === "start" && start !== undefined) return start;
      if (settings.stamp === "end" && end !== undefined) return endOf(end, settings);
      const at = momentOf("7") ?? momentOf("9");
      if (at !== undefined) return at.from;
    }
    throw new RowError(
      settings.stamp === "end"
        ? "the quantity has no end (DTM+164) and no time of reading (DTM+7 or DTM+9)"
        : "the quantity has no start (DTM+163) and no time of reading (DTM+7 or DTM+9)",
    );
  }
}

/** Period, start, end, time of the reading: of a quantity, or of all that follow. */
const DATES: ReadonlySet<string> = new Set(["163", "164", "324", "7", "9"]);

function endOf({ to, dayEnd }: Moment, settings: Settings): number {
  if (dayEnd === undefined) return to;
  if (settings.endDays === undefined)
    throw new RowError("the end of the period is written as a day, and may mean its beginning or its end", {
      hint:
        "Ask the sender, and set `endDays: inclusive` (the last day of the period) or `endDays: " +
        "exclusive` (the day after), or `stamp: start`.",
    });
  return settings.endDays === "exclusive" ? to : dayEnd;
}

function offsetZone(text: string): string {
  const hours = Number(text);
  if (!/^[+-]?\d{1,2}$/.test(text) || Math.abs(hours) > 14)
    throw new RowError(`"${text}" is not an offset in hours`, { text });
  return `${hours < 0 ? "-" : "+"}${String(Math.abs(hours)).padStart(2, "0")}:00`;
}

const keep = tagKeeper();

function tagsOf({ qualifier, status }: Quantity, { qualityTags }: Settings): Tags | undefined {
  if (qualityTags === "none") return undefined;
  const statusText = status.join(" ");
  return keep(`${qualifier}|${statusText}|${qualityTags}`, () => ({
    ...(qualityTags === "all" || !GOOD.has(qualifier) ? { quality: qualityOf(qualifier) } : {}),
    ...(statusText === "" ? {} : { status: statusText }),
  }));
}
