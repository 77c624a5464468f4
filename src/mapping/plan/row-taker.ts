/**
 * Takes the rows of `eachRow`: plain rows from their bytes where the mapper gave a plan, all others by the mapper's
 * `take`, which alone defines what a row means.
 */
import { PlainRows } from "../readers/plain-rows.ts";
import { stampPlace } from "../readers/row-place.ts";
import type { RowPlan } from "../row-plan.ts";
import { bytePlan } from "./byte-plan.ts";
import { PlannedRows, type PlanTools } from "./planned-rows.ts";

const LF = 10;
const CR = 13;

export interface RowTakerParts<Row extends object> {
  readonly take: (row: Row) => void;
  readonly plan: (() => RowPlan | null | undefined) | undefined;
  readonly tools: PlanTools;
}

export class RowTaker<Row extends object> {
  readonly #parts: RowTakerParts<Row>;
  /** Null when rows are taken one by one from now on. */
  #planned: PlannedRows | null | undefined;
  /** See `RowPlan`; false until the plan is known. */
  isIndependent = false;

  constructor(parts: RowTakerParts<Row>) {
    this.#parts = parts;
    this.#planned = parts.plan === undefined ? null : undefined;
  }

  /** Takes a chunk of rows. */
  take(block: readonly Row[] | PlainRows<Row>): void {
    if (block instanceof PlainRows) this.#takeLines(block);
    else for (let at = 0; at < block.length; at += 1) this.#takeRow(block[at]);
    this.#parts.tools.tracker.leave();
  }

  #takeRow(row: Row | undefined): void {
    if (row === undefined) return;
    this.#parts.tools.tracker.enter(row);
    this.#parts.tools.attempt(row, () => this.#parts.take(row));
  }

  #takeLines(block: PlainRows<Row>): void {
    const { lines } = block;
    const { bytes } = lines;
    const { length } = bytes;
    let { line } = lines;
    let planned = this.#plannedFor(block);
    let from = 0;
    let fast: { from: number; to: number; line: number } | undefined;
    const latest = { from: 0, to: 0, line: 0 };
    for (; from < length; line += 1) {
      let end: number;
      if (planned === null) {
        const found = bytes.indexOf(LF, from);
        end = found === -1 ? length : found;
      } else end = planned.split(bytes, from);
      const to = end > from && bytes[end - 1] === CR ? end - 1 : end;
      if (to > from) {
        if (planned?.takeLine(bytes, to, line) === true) {
          latest.from = from;
          latest.to = to;
          latest.line = line;
          fast = latest;
        } else {
          const make = () => this.#takeRow(block.make(lines.cells(from, to), line));
          if (planned === null) make();
          else planned.learn(bytes, line, make);
          fast = undefined;
          planned ??= this.#plannedFor(block);
        }
      }
      from = end + 1;
    }
    lines.nextLine = line;
    if (planned?.isWorthwhile === false) this.#planned = null;
    if (fast === undefined) return;
    // A fault of the whole file is at the row that was read last.
    const row = lines.cells(fast.from, fast.to);
    stampPlace(row, fast.line);
    this.#parts.tools.tracker.enter(row);
  }

  #plannedFor(block: PlainRows<Row>): PlannedRows | null {
    if (this.#planned !== undefined) return this.#planned;
    const plan = this.#parts.plan?.();
    if (plan === undefined) return null;
    const found = plan === null ? undefined : bytePlan(plan, block);
    this.isIndependent = plan?.independent === true;
    this.#planned = found === undefined ? null : new PlannedRows(found, this.#parts.tools);
    return this.#planned;
  }
}
