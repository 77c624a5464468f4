/**
 * Finds the pass of a repeated hour for each row of a series, from the order of the rows alone. Two orders are
 * recognised: one pass after the other (2:00, 2:15, 2:30, 2:45, 2:00, 2:15, …), and both passes of each time together
 * (2:00, 2:00, 2:15, 2:15, …), forwards or backwards. Rows may be missing. Rows that fit more than one order, with
 * different instants, are left undecided.
 */

export type Pass = "first" | "second";

/** The known facts about one stay of a series in the hour. Wall times in milliseconds. */
export interface Stay {
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

const NEITHER = "the passes neither follow each other nor alternate time by time";

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

export function rises(walls: readonly number[]): boolean {
  return walls.every((wall, at) => at === 0 || wall > (walls[at - 1] ?? 0));
}
