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

export class Values {
  readonly #tools: Tools;
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
    const { settings, emit, number, converter } = this.#tools;
    const cell = cells[column.at];
    const text = textAt(cells, column.at);
    const unit = column.unit || head.unit;
    const isIndex = layout.values.length > 1;
    const asEnergy = settings.meanPower === "energy" && /^k?W$/.test(unit);
    const energyUnit = asEnergy ? `${unit}h` : unit;
    const isMissing = MISSING.has(text.toUpperCase());
    if (isMissing && (isIndex || OFFSET.test(textAt(cells, layout.date)))) {
      // Registers that the tariff does not use are not gaps.
      if (!isIndex) this.missing += 1;
      return;
    }
    // A row without a value also shows the position of its series in the repeated hour of autumn, unless it holds no
    // values at all.
    const place = attempt(() => {
      const target = this.#targetOf(head, isIndex ? column.name : energyUnit || column.name, energyUnit);
      return { target, date: this.#dateOf(cells, layout, head, target, isIndex) };
    });
    if (isMissing) {
      this.missing += 1;
      return;
    }
    const { target, date } = place();
    this.#refuseShared(target, column.name);
    const read =
      typeof cell === "number"
        ? cell
        : inColumn(column.name, text, (value) => number(value, { decimal: settings.decimal }));
    const value = asEnergy ? (read * this.#stepOf(head)) / 60 : read;
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

  #dateOf(cells: Cells, layout: Layout, head: Head, target: Target, isIndex: boolean): Date | Temporal.Instant {
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
    const at = inColumn(column, text, () =>
      layout.time === undefined
        ? time.iso(text, settings.timeZone, policy)
        : time.local(`${text} ${clock(textAt(cells, layout.time))}`, "dd/MM/yyyy HH:mm:ss", this.#zoneOf(text), policy),
    );
    if (settings.stamp === "asIs" || settings.stamp === settings.horodate || isIndex) return at;
    const step = this.#stepOf(head);
    return time.addMinutes(at, settings.stamp === "end" ? step : -step);
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
    const step = head.step || (this.#tools.settings.stepMinutes ?? 0);
    if (step > 0) return step;
    throw new RowError("the step of the load curve is not known: the file does not give it", {
      column: "Pas",
      hint: "Set `stepMinutes` if the whole file has one step, such as 30.",
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
