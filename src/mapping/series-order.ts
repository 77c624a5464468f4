/**
 * The rows of each series around repeated hours, for `byOrder`: rows in an hour are held until the series has left it.
 */
import { PendingDate } from "./pending-instant.ts";
import { RowError } from "./readers/row-error.ts";
import type { Occurrence, Zone } from "./zone.ts";

/** The two instants of a wall time. */
interface Twice {
  readonly first: number;
  readonly second: number;
}

interface Held extends Twice {
  readonly wall: number;
  /** The time at which the hour ends: by the clock it occurs once, but twice where ends are named by their starts. */
  readonly isEnd: boolean;
  readonly date: PendingDate;
}

export interface Series {
  /** Wall time of the last row outside of a repeated hour; NaN at the start of the file. */
  last: number;
  /** Rows of the current repeated hour. */
  held: Held[];
}

const NEITHER = "the passes neither follow each other nor alternate time by time";

/** A row from another day does not help to decide about an hour. */
const NEAR_MS = 86_400_000;
/** Limit on the rows held for all series: two hours of 16 series with a row a second. */
const HELD_MAX = 120_000;

const HINT =
  "All rows of the series in that hour are refused. Ask the sender for the offset or for UTC; only where the file " +
  "has one pass alone, the policy earlier or later says which. Where several series alternate in " +
  "one file, a mapper has to name the series: { byOrder: series }.";

/** A row that counted in the order of its series. */
export interface Passed {
  readonly order: SeriesOrder;
  readonly series: Series;
}

export class SeriesOrder {
  readonly #zone: Zone;
  readonly #series = new Map<string, Series>();
  /** Whether some hour began without a row of its series before it. */
  hasOpenStart = false;

  constructor(zone: Zone) {
    this.#zone = zone;
  }

  #seriesOf(key: string): Series {
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    const made = { last: Number.NaN, held: [] };
    this.#series.set(key, made);
    return made;
  }

  /** Adds a row whose wall time occurs once. Returns its series, for further rows of it. */
  pass(key: string, wall: number): Series {
    const series = this.#seriesOf(key);
    this.passIn(series, wall);
    return series;
  }

  /** As `pass`. */
  passIn(series: Series, wall: number): void {
    if (series.held.length > 0) this.#settle(series, wall);
    series.last = wall;
  }

  /** Adds a row whose wall time occurs twice. Throws a `RowError` when too many are held. */
  hold(key: string, text: string, wall: number, twice: Twice): PendingDate {
    const series = this.#seriesOf(key);
    const [first] = series.held;
    // Another repeated hour, with no row between them.
    if (first !== undefined && !isNear(first.wall, wall)) {
      this.#settle(series, undefined);
      series.last = Number.NaN;
    }
    if (series.held.length === 0 && Number.isNaN(series.last)) this.hasOpenStart = true;
    return this.#held(series, text, wall, twice, false);
  }

  /**
   * Adds a row at the time at which a repeated hour ends, when further rows may show which pass it ends; undefined for
   * a row that is to `pass`.
   */
  holdEnd(key: string, text: string, wall: number, twice: Twice): PendingDate | undefined {
    const series = this.#seriesOf(key);
    const walls = series.held.map(({ wall }) => wall);
    const isNext = walls.length === 0 ? series.last === wall : isNear(walls[0] ?? 0, wall) && runsOneWay(walls);
    return isNext ? this.#held(series, text, wall, twice, true) : undefined;
  }

  #held(series: Series, text: string, wall: number, { first, second }: Twice, isEnd: boolean): PendingDate {
    const date = new PendingDate(text);
    series.held.push({ first, second, wall, isEnd, date });
    if (series.held.length > HELD_MAX) {
      refuseAll(series.held.splice(0), this.#zone, `there are more than ${HELD_MAX} rows in it`);
      series.last = Number.NaN;
    }
    return date;
  }

  /** Whether rows wait for the end of their hour. */
  get isHolding(): boolean {
    return this.#series.values().some(({ held }) => held.length > 0);
  }

  /** Forgets the rows before a range of the file. */
  forget(): void {
    for (const series of this.#series.values()) series.last = Number.NaN;
  }

  /** Called after the last row. */
  finish(): void {
    for (const series of this.#series.values()) if (series.held.length > 0) this.#settle(series, undefined);
  }

  #settle(series: Series, next: number | undefined): void {
    const held = series.held.splice(0);
    const after = settleLastEnds(held) ?? next;
    if (held.length === 0) return;
    const walls = held.map(({ wall }) => wall);
    const around = (wall: number | undefined) =>
      wall !== undefined && isNear(wall, walls[0] ?? Number.NaN) ? wall : undefined;
    const ends = held.flatMap(({ isEnd }, at) => (isEnd ? [at] : []));
    const passes = passesOf({ walls, before: around(series.last), after: around(after), ends });
    if (typeof passes === "string") refuseAll(held, this.#zone, passes);
    else
      for (const [at, { first, second, date }] of held.entries()) date.settle(passes[at] === "first" ? first : second);
  }
}

/** The orders of a file, one for each zone. */
export class SeriesOrders {
  readonly #orders = new Map<Zone, SeriesOrder>();
  #passed: Passed | undefined;

  /** Adds a row. Returns its date where its instant is not known yet. */
  take(
    zone: Zone,
    key: string,
    text: string,
    wall: number,
    occurrence: Exclude<Occurrence, { readonly kind: "never" }> | undefined,
  ): PendingDate | undefined {
    const order = this.#of(zone);
    if (occurrence?.kind === "twice") return order.hold(key, text, wall, occurrence);
    if (occurrence?.label !== undefined) {
      const held = order.holdEnd(key, text, wall, { first: occurrence.label, second: occurrence.at });
      if (held !== undefined) return held;
    }
    this.#passed = { order, series: order.pass(key, wall) };
    return undefined;
  }

  /** The row that counted in its series since the last call. */
  takePassed(): Passed | undefined {
    const passed = this.#passed;
    this.#passed = undefined;
    return passed;
  }

  /** Whether rows wait for the end of their hour. */
  get isHolding(): boolean {
    return this.#orders.values().some(({ isHolding }) => isHolding);
  }

  /** Whether some hour began without a row of its series before it, so that earlier rows may decide about it. */
  get hasOpenStart(): boolean {
    return this.#orders.values().some(({ hasOpenStart }) => hasOpenStart);
  }

  /** Forgets the rows before a range of the file, none of which may wait. */
  forget(): void {
    for (const order of this.#orders.values()) order.forget();
  }

  /** Called after the last row. */
  finish(): void {
    for (const order of this.#orders.values()) order.finish();
  }

  #of(zone: Zone): SeriesOrder {
    const order = this.#orders.get(zone) ?? new SeriesOrder(zone);
    this.#orders.set(zone, order);
    return order;
  }
}

/**
 * A row at the end of the hour that no row of the hour follows is what the clock says; but where hours have one row
 * each, two of them end one pass each. Removes what is settled, and returns its wall time.
 */
function settleLastEnds(held: Held[]): number | undefined {
  const isHourly = held.length === 3 && held[0]?.isEnd === false && held[1]?.isEnd === true;
  let wall: number | undefined;
  while (held.at(-1)?.isEnd === true && !(isHourly && held.length === 2)) {
    const end = held.pop();
    end?.date.settle(end.second);
    wall = end?.wall;
  }
  return wall;
}

/** Whether rows rise or fall, so that they may be of one pass; the end of the hour may be there already. */
function runsOneWay(walls: readonly number[]): boolean {
  return rises(walls) || rises(walls.toReversed());
}

function refuseAll(held: readonly Held[], zone: Zone, why: string): void {
  for (const { date } of held)
    date.settle(
      new RowError(
        `"${date.text.slice(0, 60)}" occurs twice in ${zone.name}, and the order of the rows does not ` +
          `decide between them: ${why}`,
        { text: date.text, hint: HINT },
      ),
    );
}

function isNear(one: number, other: number): boolean {
  return Math.abs(one - other) <= NEAR_MS;
}

// Finds the pass of a repeated hour for each row of a series, from the order of the rows alone. Two orders are
// recognised: one pass after the other (2:00, 2:15, 2:30, 2:45, 2:00, 2:15, …), and both passes of each time together
// (2:00, 2:00, 2:15, 2:15, …), forwards or backwards. Rows may be missing. Rows that fit more than one order, with
// different instants, are left undecided.

type Pass = "first" | "second";

/** The known facts about one stay of a series in the hour. Wall times in milliseconds. */
interface Stay {
  readonly walls: readonly number[];
  /** Wall times of the rows before and after it; undefined where there is none near. */
  readonly before: number | undefined;
  readonly after: number | undefined;
  /** Places in `walls` of rows at the time at which the hour ends. */
  readonly ends?: readonly number[];
}

/** The pass of each row, or why the order does not decide it. */
export function passesOf(stay: Stay): readonly Pass[] | string {
  const { walls, ends: [end, another] = [] } = stay;
  if (end !== undefined) return another === undefined ? passesByEnd(stay, end) : NEITHER;
  const found: (readonly Pass[])[] = [];
  let isOnePass = false;
  for (const direction of directionsOf(stay)) {
    const isForwards = direction === "forwards";
    const inOrder = isForwards ? walls : walls.toReversed();
    const passes = forwards(inOrder);
    if (passes !== undefined) found.push(isForwards ? passes : passes.toReversed());
    // In this direction the rows are of one pass, and nothing shows of which.
    else if (rises(inOrder)) isOnePass = true;
  }
  const [only, other] = found;
  if (!isOnePass && only !== undefined && (other === undefined || only.every((pass, at) => pass === other[at])))
    return only;
  if (only !== undefined) return "no row before or after the hour shows whether the rows run forwards";
  return rises(walls) || rises(walls.toReversed()) ? "there is one row of each time only" : NEITHER;
}

/** Rows that are named by the starts of their intervals: 2:30, 2:45, 3:00, 2:15, 2:30, … That at 3:00 ends a pass. */
function passesByEnd(stay: Stay, end: number): readonly Pass[] | string {
  const { walls } = stay;
  const found = directionsOf(stay).flatMap((direction) => {
    const isForwards = direction === "forwards";
    const inOrder = isForwards ? walls : walls.toReversed();
    const first = isForwards ? end + 1 : walls.length - end;
    if (first < 2 || !rises(inOrder.slice(0, first)) || !rises(inOrder.slice(first))) return [];
    const passes = inOrder.map((_, at): Pass => (at < first ? "first" : "second"));
    return [isForwards ? passes : passes.toReversed()];
  });
  const [only, other] = found;
  return only === undefined || other !== undefined ? NEITHER : only;
}

type Direction = "forwards" | "backwards";

/** The directions that the rows around the hour leave open; none when they contradict each other. */
function directionsOf({ walls, before, after }: Stay): readonly Direction[] {
  const lowest = Math.min(...ends(walls));
  const came = before === undefined ? undefined : before < lowest ? "forwards" : "backwards";
  const went = after === undefined ? undefined : after > lowest ? "forwards" : "backwards";
  if (came === undefined && went === undefined) return ["forwards", "backwards"];
  if (came !== undefined && went !== undefined && came !== went) return [];
  return [came ?? went ?? "forwards"];
}

/** Rows around the hour are outside of it, so all times in the hour compare with them alike. */
function ends(walls: readonly number[]): readonly [number, number] {
  return [walls[0] ?? 0, walls.at(-1) ?? 0];
}

/** For rows in the order of time; undefined where neither order explains them, or both do. */
function forwards(walls: readonly number[]): readonly Pass[] | undefined {
  const breaks = walls.flatMap((wall, at) => (at > 0 && wall <= (walls[at - 1] ?? wall) ? [at] : []));
  const [start] = breaks;
  if (start === undefined) return undefined;
  if (isPaired(walls)) return walls.map((_, at) => (at % 2 === 0 ? "first" : "second"));
  // A repeated time may be a pair among times of which one pass is missing.
  if (breaks.length > 1 || walls[start] === walls[start - 1]) return undefined;
  return walls.map((_, at) => (at < start ? "first" : "second"));
}

/** Whether each time occurs twice in a row, and the times rise. */
function isPaired(walls: readonly number[]): boolean {
  return (
    walls.length % 2 === 0 &&
    walls.every((wall, at) => (at % 2 === 1 ? wall === walls[at - 1] : at === 0 || wall > (walls[at - 1] ?? 0)))
  );
}

function rises(walls: readonly number[]): boolean {
  return walls.every((wall, at) => at === 0 || wall > (walls[at - 1] ?? 0));
}
