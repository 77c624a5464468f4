/** Rows of values below a header. */
import { FileError, type MapContext, RowError, type Target } from "headgate/mapper";
import { attempt } from "../_declarative/faults.ts";
import { inColumn } from "../_formats/columns.ts";
import type { targetMaker } from "../_formats/target.ts";
import type { Converter } from "../_formats/units.ts";
import { type Cells, type Head, type Layout, textAt, withField } from "./layout.ts";
import type { Settings } from "./settings.ts";

const PRM = /^\d{14}$/;
const OFFSET = /(?:Z|[+-]\d{2}:?\d{2})$/i;
const MISSING: ReadonlySet<string> = new Set(["", "NA", "NAN", "NULL"]);

interface Tools extends Pick<MapContext<Settings>, "settings" | "emit" | "number" | "time"> {
  readonly targetOf: ReturnType<typeof targetMaker>;
  readonly converter: Converter;
  readonly isSheet: boolean;
}

/** The stamps of a series that depends on the step. */
interface Stamps {
  /** Epoch milliseconds; NaN for one that is not known yet, within the repeated hour. */
  last: number;
  /** Least and greatest distance between neighbours, and how many there are. */
  least: number;
  greatest: number;
  count: number;
  readonly step: number;
}

/** So many distances at least show what the step of a series is. */
const DISTANCES_MIN = 3;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export class Values {
  readonly #tools: Tools;
  readonly #stamps = new Map<Target, Stamps>();
  /** The stage of processing by target: raw and corrected values of one step would overwrite each other. */
  readonly #stages = new Map<Target, string>();
  #layout: Layout | undefined;
  /** The column of each target of the current row. */
  readonly #columns = new Map<Target, string>();
  /** Required number of cells of each row below the header. */
  #cells = 0;
  missing = 0;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** Emits the values of a row, and returns the head, which the row may have changed. Throws a `RowError`. */
  take(cells: Cells, layout: Layout, before: Head): Head {
    let head = before;
    for (const { at, field } of layout.head) head = withField(head, field, textAt(cells, at));
    this.#checkWidth(cells, layout);
    this.#checkHead(cells, layout, head);
    const tags = this.#tagsOf(cells, layout);
    this.#columns.clear();
    for (const value of layout.values) this.#takeValue(cells, layout, head, value, tags);
    return head;
  }

  /**
   * Some exports leave out trailing delimiters of empty cells, but then in every row; workbooks end rows at the last
   * filled cell.
   */
  #checkWidth(cells: Cells, layout: Layout): void {
    for (let at = layout.width; at < cells.length; at += 1)
      if (textAt(cells, at) !== "")
        throw new RowError(`the row has ${cells.length} cells where the header has ${layout.width}`, {
          hint: "A cell too many: was the table changed?",
        });
    if (this.#tools.isSheet) return;
    if (layout !== this.#layout) {
      this.#layout = layout;
      const least = layout.values.length === 1 ? (layout.values[0]?.at ?? 0) + 1 : 2;
      this.#cells = Math.min(layout.width, Math.max(cells.length, least));
    }
    if (cells.length >= this.#cells) return;
    throw new RowError(`the row has ${cells.length} cells where the others have ${this.#cells}`, {
      hint: "Cells are missing: was the file cut off here?",
    });
  }

  #takeValue(
    cells: Cells,
    layout: Layout,
    head: Head,
    column: Layout["values"][number],
    tags: Readonly<Record<string, string>> | undefined,
  ): void {
    const { settings, emit, number, time, converter } = this.#tools;
    const cell = cells[column.at];
    const text = textAt(cells, column.at);
    const unit = column.unit || head.unit;
    const isIndex = layout.values.length > 1;
    const asEnergy = settings.meanPower === "energy" && /^k?W$/.test(unit);
    const energyUnit = asEnergy ? `${unit}h` : unit;
    const isMissing = MISSING.has(text.toUpperCase());
    const isMoved = settings.stamp !== "asIs" && settings.stamp !== settings.horodate && !isIndex && !layout.isDay;
    const needsStep = !isIndex && !layout.isDay && (asEnergy || isMoved);
    if (isMissing && !needsStep && (isIndex || OFFSET.test(textAt(cells, layout.date)))) {
      // Registers that the tariff does not use are not gaps.
      if (!isIndex) this.missing += 1;
      return;
    }
    // A row without a value also shows the step of its series, and its position in the repeated hour of autumn, unless
    // it holds no values at all.
    const place = attempt(() => {
      const target = this.#targetOf(head, isIndex ? column.name : energyUnit || column.name, energyUnit);
      return { target, stamp: this.#stampOf(cells, layout, head, target) };
    });
    if (isMissing) {
      this.missing += 1;
      if (needsStep && head.step + (settings.stepMinutes ?? 0) > 0) this.#followMissing(place, head);
      return;
    }
    const { target, stamp } = place();
    const step = needsStep ? this.#stepOf(head) : 0;
    if (needsStep) this.#follow(target, stamp, step);
    const date = isMoved ? time.addMinutes(stamp, settings.stamp === "end" ? step : -step) : stamp;
    this.#refuseShared(target, column.name);
    const read =
      typeof cell === "number"
        ? cell
        : inColumn(column.name, text, (value) => number(value, { decimal: settings.decimal }));
    const value = asEnergy ? (read * step) / 60 : read;
    emit({
      target,
      date,
      value: energyUnit === "" ? value : converter.convert(value, energyUnit),
      unit: energyUnit === "" ? undefined : converter.unitOf(energyUnit),
      tags,
    });
  }

  /** Two columns of one target would overwrite each other in every row. */
  #refuseShared(target: Target, column: string): void {
    const other = this.#columns.get(target);
    this.#columns.set(target, column);
    if (other !== undefined)
      throw new FileError(`the columns "${other}" and "${column}" become the same target`, {
        column: `${other} and ${column}`,
        hint: "Distinguish them in the setting `target`, by {column} in mappingConfig.",
      });
  }

  #targetOf(head: Head, column: string, unit: string): Target {
    if (!PRM.test(head.prm))
      throw new RowError(
        head.prm === "" ? "no PRM is named for this value" : `"${head.prm}" is no PRM: it has 14 digits`,
        { column: "Identifiant PRM", text: head.prm, hint: "For a file that names none, set `prm`." },
      );
    const { prm, business, physical, stage, type } = head;
    const target = this.#tools.targetOf({
      prm,
      business: business || this.#business(),
      physical: physical || "EA",
      column,
      stage,
      type,
      unit,
    });
    const known = this.#stages.get(target);
    if (known === undefined) this.#stages.set(target, stage);
    else if (known !== stage)
      throw new FileError(`the values of the stages "${known}" and "${stage}" have the same target`, {
        hint: "Distinguish them in the setting `target`, by {stage} in mappingConfig.",
        column: "Etape metier",
        text: stage,
      });
    return target;
  }

  #business(): string {
    const { business, target } = this.#tools.settings;
    if (business !== undefined || !Object.values(target).some((text) => String(text).includes("{business}")))
      return business ?? "";
    throw new RowError("the file does not say whether it holds consumption or production", {
      column: "Grandeur metier",
      hint: "Add to the trigger's metadata which it is: `business: CONS` or `business: PROD`",
    });
  }

  /** The instant of the file's stamp. */
  #stampOf(cells: Cells, layout: Layout, head: Head, target: Target): Temporal.Instant {
    const { settings, time } = this.#tools;
    const text = textAt(cells, layout.date);
    const column = layout.isDay ? "Date" : "Horodate";
    if (layout.isDay)
      return inColumn(column, text, () => {
        const zone = this.#zoneOf(text);
        return /^\d{4}-/.test(text)
          ? time.dayStart(text.slice(0, 10), "yyyy-MM-dd", zone)
          : time.dayStart(text, "dd/MM/yyyy", zone);
      });
    const policy =
      settings.dst === "byOrder"
        ? { byOrder: "mappingConfig" in target ? `${head.prm} ${target.mappingConfig}` : head.prm }
        : settings.dst;
    return inColumn(column, text, () =>
      layout.time === undefined
        ? time.iso(text, settings.timeZone, policy)
        : time.local(`${text} ${clock(textAt(cells, layout.time))}`, "dd/MM/yyyy HH:mm:ss", this.#zoneOf(text), policy),
    );
  }

  #zoneOf(text: string): string {
    const { timeZone } = this.#tools.settings;
    if (timeZone !== undefined) return timeZone;
    throw new RowError(`"${text}" has no offset, and no time zone is set`, {
      text,
      hint: "Add to the trigger's metadata the zone of the file: `timeZone: Europe/Paris`",
    });
  }

  #stepOf(head: Head): number {
    const { stepMinutes } = this.#tools.settings;
    const step = head.step || (stepMinutes ?? 0);
    if (head.step > 0 && stepMinutes !== undefined && stepMinutes !== head.step)
      throw new FileError(`the file gives a step of ${head.step} minutes, and \`stepMinutes\` is ${stepMinutes}`, {
        column: "Pas",
        hint: "Leave out `stepMinutes`: it is for files that do not give their step.",
      });
    if (step > 0) return step;
    throw new RowError("the step of the load curve is not known: the file does not give it", {
      column: "Pas",
      hint: "Set `stepMinutes` if the whole file has one step, such as 30.",
    });
  }

  #followMissing(place: () => { readonly target: Target; readonly stamp: Temporal.Instant }, head: Head): void {
    const known = attempt(place);
    let found: ReturnType<typeof place>;
    try {
      found = known();
    } catch (thrown) {
      if (thrown instanceof RowError) return;
      throw thrown;
    }
    this.#follow(found.target, found.stamp, this.#stepOf(head));
  }

  /**
   * Neighbours of a series are a step apart, or several where some are missing. Throws a `RowError` for others: a step
   * that the file left would give multiples of the energy.
   */
  #follow(target: Target, stamp: Temporal.Instant, step: number): void {
    // The instants of the repeated hour are not known before it has passed.
    const at = msOf(stamp);
    const stamps = this.#stamps.get(target);
    if (stamps?.step !== step) {
      this.#stamps.set(target, { last: at, step, least: Number.POSITIVE_INFINITY, greatest: 0, count: 0 });
      return;
    }
    const distance = Math.abs(at - stamps.last) / MINUTE_MS;
    stamps.last = at;
    if (!(distance > 0)) return;
    if (distance % step !== 0)
      throw new RowError(`the stamp is ${distance} minutes from the one before it, and the step is ${step} minutes`, {
        column: "Horodate",
        hint:
          "The file changes its step, or `stepMinutes` is another one. Mean power as it is (`meanPower: keep`, " +
          "`stamp: asIs`) needs no step.",
      });
    stamps.least = Math.min(stamps.least, distance);
    stamps.greatest = Math.max(stamps.greatest, distance);
    stamps.count += 1;
  }

  /** Throws a `FileError` for a series of which all neighbours are another step apart. */
  finish(): void {
    for (const { step, least, greatest, count } of this.#stamps.values())
      if (count >= DISTANCES_MIN && least === greatest && least !== step)
        throw new FileError(`all stamps of a series are ${least} minutes apart, and its step is ${step} minutes`, {
          column: "Pas",
          hint: "Is `stepMinutes` right? Mean power as it is (`meanPower: keep`, `stamp: asIs`) needs no step.",
        });
  }

  /** Compares the facts in the head with the settings and the rows. Throws a `FileError` or a `RowError`. */
  #checkHead(cells: Cells, { date, time, stamp, isDay }: Layout, head: Head): void {
    const { prm, business, horodate, period } = this.#tools.settings;
    if (prm !== undefined && head.prm !== "" && head.prm !== prm)
      throw differs("Identifiant PRM", head.prm, "prm", prm);
    if (business !== undefined && head.business !== "" && head.business !== business)
      throw differs("Grandeur metier", head.business, "business", business);
    if (stamp !== undefined && stamp !== horodate && !isDay)
      throw differs("Horodate", `${stamp} of steps`, "horodate", horodate);
    if (period === "ignore" || head.from === "" || head.to === "") return;
    const [from, to, day] = [dayOf(head.from), dayOf(head.to), dayOf(textAt(cells, date))];
    if (from === undefined || to === undefined || day === undefined) return;
    // The last step of a period may end on the day after.
    if (day >= from && day <= to + DAY_MS) return;
    throw new RowError(`the row is outside of the period that the file names, ${head.from} to ${head.to}`, {
      column: time === undefined ? "Horodate" : "Date de la mesure",
      text: textAt(cells, date),
      hint: "If the file may hold more than the period of its head, set `period: ignore`.",
    });
  }

  #tagsOf(cells: Cells, layout: Layout): Readonly<Record<string, string>> | undefined {
    if (this.#tools.settings.qualityTags === "none" || layout.tags.length === 0) return undefined;
    const tags = Object.fromEntries(
      layout.tags.flatMap(({ at, name }) => {
        const text = textAt(cells, at);
        return text === "" ? [] : [[name, text]];
      }),
    );
    return Object.keys(tags).length === 0 ? undefined : tags;
  }
}

/** Times without seconds are written too. */
function clock(text: string): string {
  return /^\d\d:\d\d$/.test(text) ? `${text}:00` : text;
}

/** Epoch milliseconds; NaN for an instant that is not known yet. */
function msOf(stamp: Temporal.Instant): number {
  try {
    return stamp.epochMilliseconds;
  } catch (thrown) {
    if (thrown instanceof RowError) return Number.NaN;
    throw thrown;
  }
}

/** Midnight of a day in UTC, for comparison with others. */
function dayOf(text: string): number | undefined {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)/.exec(text) ?? [];
  const [, dayFirst, monthSecond, yearLast] = /^(\d\d)\/(\d\d)\/(\d{4})/.exec(text) ?? [];
  const ms = Date.UTC(Number(year ?? yearLast), Number(month ?? monthSecond) - 1, Number(day ?? dayFirst));
  return Number.isNaN(ms) ? undefined : ms;
}

function differs(column: string, inFile: string, setting: string, set: string): FileError {
  return new FileError(`the file says ${inFile} (${column}), and \`${setting}\` is ${set}`, {
    column,
    text: inFile,
    hint: "The file contradicts the settings: leave the setting out, or have another trigger claim this file.",
  });
}
