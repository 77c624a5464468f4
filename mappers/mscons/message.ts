/** One message: segments of its header, then points of delivery with products, and the quantities of these. */
import { type MapContext, RowError, SOURCE_ZONE, type Target } from "headgate/mapper";
import { inColumn } from "../_formats/columns.ts";
import { type Tags, tagKeeper } from "../_formats/tags.ts";
import type { targetMaker } from "../_formats/target.ts";
import type { Converter } from "../_formats/units.ts";
import { GOOD, qualityOf, unitSymbol } from "./codes.ts";
import { declaredOffset, hasOffset, type Moment, readDate } from "./dates.ts";
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
  readonly #zone: string | undefined;
  /** Offset of all dates without their own, and the segment that declares it. */
  #offset: { readonly zone: string; readonly by: string } | undefined;
  #partners = { sender: "", receiver: "" };
  #location = "";
  #locationRank = 0;
  #device = "";
  #product = "";
  #detail = false;
  readonly #locationDates: Dates = new Map();
  readonly #productDates: Dates = new Map();
  readonly #messageDates: Dates = new Map();
  #quantity: Quantity | undefined;
  /** Inside a product: after LIN. */
  #inProduct = false;
  /** Quantities of the product, and whether those before had dates of their own. */
  #quantities = 0;
  #hasOwnDates: boolean | undefined;
  /** Segments of the product are out of order, so its quantities may have those of others. */
  #isShifted = false;
  /** A date or status of the product, before its first quantity. */
  #early: Segment | undefined;
  readonly #totals = { quantities: 0, lines: 0, decimals: 0, isWhole: true };
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
        if (component(segment, 0) !== "MG") break;
        if (this.#inProduct) throw this.#shifted(segment, "stands behind LIN, and belongs to LOC");
        this.#device = component(segment, 0, 1);
        break;
      case "LIN":
        this.finish();
        this.#inProduct = true;
        this.#quantities = 0;
        this.#hasOwnDates = undefined;
        this.#isShifted = false;
        this.#early = undefined;
        this.#totals.lines += 1;
        this.#productDates.clear();
        this.#product = component(segment, 2);
        break;
      case "CNT":
        this.finish();
        this.#checkTotal(segment);
        break;
      case "PIA":
        if (this.#quantities > 0) throw this.#shifted(segment, "stands behind QTY, and belongs to LIN");
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
        this.#takeStatus(segment, `${component(segment, 0)}:${component(segment, 2) || component(segment, 1)}`);
        break;
      case "CCI":
        this.#takeStatus(segment, component(segment, 2) || component(segment, 0));
        break;
      case "CAV":
        this.#addValue(component(segment, 0));
        break;
    }
  }

  /** A status belongs to its quantity; before the first one it would belong to the next. Throws a `RowError`. */
  #takeStatus(segment: Segment, status: string): void {
    if (this.#quantity !== undefined) {
      if (this.#early?.tag === segment.tag)
        throw this.#shifted(segment, "stands before the first QTY of the product and behind it");
      this.#quantity.status.push(status);
    } else if (this.#inProduct) this.#early ??= segment;
  }

  /** Refuses the quantity and all others of the product: each may have the segment of another one. */
  #shifted(segment: Segment, place: string): RowError {
    this.#isShifted = true;
    return new RowError(`${segment.tag} ${place}: MSCONS has another order`, {
      hint: "Each quantity would take the segment of the one before or after it. Ask the sender.",
    });
  }

  /** Throws a `RowError` for a count or a total that is another one. */
  #checkTotal(segment: Segment): void {
    const { settings, number, separators } = this.#tools;
    const qualifier = component(segment, 0);
    const { quantities, lines, decimals, isWhole } = this.#totals;
    if (settings.declared === "ignore" || (qualifier !== "1" && qualifier !== "2")) return;
    const text = component(segment, 0, 1);
    const declared = inColumn(segment.column, text, (one) => number(one, { decimal: separators.decimal }));
    const counted = qualifier === "1" ? Number(quantities.toFixed(decimals)) : lines;
    // A quantity that cannot be read is refused itself.
    if (declared === counted || (qualifier === "1" && !isWhole)) return;
    throw new RowError(
      qualifier === "1"
        ? `CNT gives ${text} as the sum of all quantities, and they are ${counted}`
        : `CNT counts ${text} line items, and there are ${counted}`,
      {
        text,
        hint: "Was the message changed after it was written? If CNT means something else here, set `declared: ignore`.",
      },
    );
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
    this.#quantities += 1;
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
      this.#totals.isWhole = false;
      throw thrown;
    }
    this.#totals.quantities += this.#quantity.value;
    const decimals = component(segment, 0, 1).split(this.#tools.separators.decimal)[1]?.length ?? 0;
    this.#totals.decimals = Math.max(this.#totals.decimals, decimals);
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
    // The offset of the dates of the message: Ediel has both forms.
    if (qualifier === "735" || (qualifier === "ZZZ" && code === "805")) {
      const zone = declaredOffset(text, code);
      if (zone !== undefined) this.#offset = { zone, by: `DTM+${qualifier}` };
      return;
    }
    if (!DATES.has(qualifier)) return;
    try {
      this.#addDate(segment, qualifier, text, code);
    } catch (thrown) {
      if (this.#quantity !== undefined) this.#quantity.refused = true;
      throw thrown;
    }
  }

  /** Throws a `RowError` for a date that cannot be read, or that is not where the standard has it. */
  #addDate(segment: Segment, qualifier: string, text: string, code: string): void {
    if (!this.#detail) {
      // The offset of the message may follow, and not all messages need one.
      if (PERIOD.has(qualifier)) this.#messageDates.set(qualifier, () => this.#read(text, code, undefined));
      return;
    }
    const dates = this.#quantity?.dates ?? (this.#inProduct ? this.#productDates : this.#locationDates);
    if (this.#quantity !== undefined && this.#productDates.size > 0)
      throw this.#shifted(segment, "stands before the first QTY of the product and behind it");
    if (this.#inProduct && dates.has(qualifier)) throw this.#shifted(segment, `is there twice with ${qualifier}`);
    dates.set(qualifier, this.#dated(text, code));
  }

  #dated(text: string, code: string): Moment | ((target: Target) => Moment) {
    if (this.#zone !== SOURCE_ZONE || this.#usedOffset !== undefined || hasOffset(code))
      return this.#read(text, code, undefined);
    // Its faults are those of this segment, whatever the zone.
    readDate(text, code, { zone: "UTC", time: this.#tools.time });
    return (target) => this.#read(text, code, target);
  }

  /** With `declared: ignore` a zone that is known counts alone. */
  get #usedOffset() {
    const isIgnored = this.#tools.settings.declared === "ignore" && this.#zone !== undefined;
    return isIgnored ? undefined : this.#offset;
  }

  /** Dates without an offset have that of the message; a zone that is set has to agree. Throws a `RowError`. */
  #read(text: string, code: string, target: Target | undefined): Moment {
    const { time } = this.#tools;
    const zone = this.#zone === SOURCE_ZONE && target !== undefined ? time.zone(SOURCE_ZONE, target) : this.#zone;
    const offset = this.#usedOffset;
    const isSet = zone !== undefined && zone !== SOURCE_ZONE;
    if (hasOffset(code) || offset === undefined) return readDate(text, code, { zone, time });
    const read = readDate(text, code, { zone: offset.zone, time });
    if (isSet && target === undefined && !isIn(read, text, code, zone, time))
      throw new RowError(`${offset.by} declares the offset ${offset.zone}, and at ${text} it is another in ${zone}`, {
        text,
        hint: "Leave out `timeZone`: the message says its offset. If the message is wrong, set `declared: ignore`.",
      });
    return read;
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
      this.#checkDates(quantity);
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

  /** Throws a `RowError` where the dates of the product's quantities, or of what is around them, do not go together. */
  #checkDates({ dates, target }: Quantity): void {
    if (this.#isShifted) throw new RowError("the quantity is of a product whose segments are out of order");
    const hasOwn = dates.size > 0;
    const differs = this.#hasOwnDates !== undefined && this.#hasOwnDates !== hasOwn;
    if (differs && this.#productDates.size + this.#locationDates.size > 0)
      throw new RowError(
        `the quantity has ${hasOwn ? "a date" : "no date"} of its own, and others of its product have ` +
          `${hasOwn ? "none" : "theirs"}`,
        { hint: "Dates follow their quantity: a segment is missing, or stands elsewhere." },
      );
    this.#hasOwnDates = hasOwn;
    if (dates.size === 0 || this.#tools.settings.declared === "ignore") return;
    const own = periodOf(dates, target);
    for (const [around, name] of [
      [this.#locationDates, "the point"],
      [this.#messageDates, "the message"],
    ] as const) {
      const whole = periodOf(around, target);
      if (own.from >= whole.from && own.to <= whole.to) continue;
      throw new RowError(`the period of the quantity is outside of the one that ${name} declares`, {
        hint: "If the period of point or message means something else here, set `declared: ignore`.",
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
const PERIOD: ReadonlySet<string> = new Set(["163", "164", "324"]);

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

/** Start and end of a period by its dates; without bounds where there are none. */
function periodOf(dates: Dates, target: Target): { readonly from: number; readonly to: number } {
  const momentOf = (qualifier: string): Moment | undefined => {
    const found = dates.get(qualifier);
    return typeof found === "function" ? found(target) : found;
  };
  const whole = momentOf("324");
  const end = momentOf("164") ?? whole;
  return {
    from: momentOf("163")?.from ?? whole?.from ?? Number.NEGATIVE_INFINITY,
    // An end that is written as a day may be its end.
    to: end?.dayEnd ?? end?.to ?? Number.POSITIVE_INFINITY,
  };
}

/** Whether the text may be that moment in the zone, in one pass or the other of a repeated hour. */
function isIn(read: Moment, text: string, code: string, zone: string, time: Tools["time"]): boolean {
  return (["earlier", "later"] as const).some((policy) => {
    const one = readDate(text, code, { zone, time, policy });
    return one.from === read.from && one.to === read.to;
  });
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
