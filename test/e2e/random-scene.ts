/** Files by chance for one round of random kills, and what must be stored of them, told from the files alone. */
import { expect } from "vitest";
import { REFUSED_VALUE } from "./misbehaviour.ts";
import { readingsOf } from "./readings.ts";
import type { Rig, Stage, StoredPoint } from "./rig.ts";

/** Which files a round has beside the corrections, each of them for a variable of its own. */
const SORTS = ["plain", "tagged", "large", "refused", "lost", "held"] as const;
type Sort = (typeof SORTS)[number];
const SORTS_A_ROUND = 3;
const UNKNOWN_VARIABLES = { lost: 99_999_999, held: 99_999_998 } as const;
const ENDS: Readonly<Partial<Record<Sort, string>>> = {
  refused: "quarantined",
  lost: "discarded",
  held: "held",
};

export interface RandomScene {
  readonly stored: readonly ExpectedVariable[];
  /** Variables whose pushes are refused when they are large. */
  readonly large: ReadonlySet<number>;
  /** How many files end how. */
  readonly files: Readonly<Record<string, number>>;
  /** How the last process may end: what was discarded before it began, and archived, is no concern of its own. */
  readonly codes: readonly number[];
  readonly hasUnknown: boolean;
}

interface ExpectedVariable {
  readonly variableId: number;
  /** Every version that must be there, and no other. */
  readonly versions: readonly StoredPoint[];
  /** The value that counts, by date. */
  readonly newest: ReadonlyMap<string, number>;
}

interface Laid {
  readonly rig: Rig;
  readonly name: string;
  readonly chance: () => number;
  put(name: string, content: string, minutesAgo: number): Promise<void>;
}

export async function layRandomScene(
  rig: Rig,
  stage: Stage,
  folder: string,
  chance: () => number,
  from: readonly Sort[] = SORTS,
): Promise<RandomScene> {
  const put = (name: string, content: string, minutesAgo: number) =>
    stage.put(`in/${name === "lost" ? "unguarded" : "standard"}_${name}.csv`, content, folder, minutesAgo);
  const laid: Laid = { rig, name: stage.name, chance, put };
  const stored = [await layCorrected(laid, true), await layCorrected(laid, false)];
  const files: Record<string, number> = { delivered: 4 };
  const large = new Set<number>();
  const sorts = shuffled(from, chance).slice(0, SORTS_A_ROUND);
  for (const sort of sorts) {
    const end = ENDS[sort] ?? "delivered";
    files[end] = (files[end] ?? 0) + 1;
    const variable = await layOne(laid, sort);
    if (variable === null) continue;
    stored.push(variable);
    if (sort === "large") large.add(variable.variableId);
  }
  const hasUnknown = sorts.includes("lost");
  const codes = sorts.includes("refused") || sorts.includes("held") ? [1] : hasUnknown ? [0, 1] : [0];
  return { stored, large, files, codes, hasUnknown };
}

/** Two files of one variable: the later corrects a part of the earlier and goes on after it. */
async function layCorrected({ rig, name, chance, put }: Laid, isVersioned: boolean): Promise<ExpectedVariable> {
  const sort = isVersioned ? "history" : "latest";
  const id = await rig.variable(`${name}-${sort}`, isVersioned);
  const count = 20 + Math.trunc(chance() * 60);
  const first = readingsOf(id, count, 0);
  const second = readingsOf(id, count, 5_000, Math.trunc(count / 3));
  await put(`${sort}_1`, first.csv, 9);
  await put(`${sort}_2`, second.csv, 5);
  const newest = newestOf([...first.points, ...second.points]);
  const versions = isVersioned
    ? [...first.points, ...second.points]
    : [...newest].map(([date, value]) => ({ date, value, version: null }));
  return { variableId: id, versions, newest };
}

async function layOne({ rig, name, chance, put }: Laid, sort: Sort): Promise<ExpectedVariable | null> {
  const count = 20 + Math.trunc(chance() * 70);
  if (sort === "lost" || sort === "held") {
    await put(sort, readingsOf(UNKNOWN_VARIABLES[sort], count).csv, 2);
    return null;
  }
  const id = await rig.variable(`${name}-${sort}`, sort === "tagged" || chance() < 0.5);
  const { points, csv } = readingsOf(id, count, 1_000);
  if (sort === "tagged") {
    const versions = points.map((point, index) => ({ ...point, version: `v${index % 3}` }));
    const rows = versions.map(({ date, value, version }) => `${date},${value},${id},${version}`);
    await put(sort, `date,value,variable_id,version\n${rows.join("\n")}\n`, 2);
    return { variableId: id, versions, newest: newestOf(points) };
  }
  const bad = sort === "refused" ? `2026-04-01T00:00:00Z,${REFUSED_VALUE},${id}\n` : "";
  await put(sort, csv + bad, 2);
  return { variableId: id, versions: points, newest: newestOf(points) };
}

function newestOf(points: readonly StoredPoint[]): Map<string, number> {
  return new Map(points.map(({ date, value }) => [date, value]));
}

function shuffled<Item>(items: readonly Item[], chance: () => number): Item[] {
  return items
    .map((item) => ({ item, at: chance() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ item }) => item);
}

/** Each version of each point is there once, nothing else is, and the later files count. */
export async function expectExactlyStored(rig: Rig, { stored }: RandomScene): Promise<void> {
  for (const { variableId, versions, newest } of stored) {
    expect(ordered(await rig.stored(variableId)), `versions of ${variableId}`).toEqual(ordered(versions));
    const shown = await rig.stored(variableId, false);
    expect(new Map(shown.map(({ date, value }) => [date, value])), `newest of ${variableId}`).toEqual(newest);
  }
}

function ordered(points: readonly StoredPoint[]): StoredPoint[] {
  return points.toSorted((one, other) =>
    one.date === other.date ? one.value - other.value : one.date < other.date ? -1 : 1,
  );
}
