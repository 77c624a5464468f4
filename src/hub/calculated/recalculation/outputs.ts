/** The computed rows of a part as the body of a push. */
import type { ComputedRows } from "../engines/engine.ts";
import type { Interval } from "./reach.ts";

export interface OutputParts {
  readonly variableId: number;
  readonly isVersioned: boolean;
  readonly defaultVersion: string;
  readonly window: Interval;
  /** Rows after the window are kept: it reaches the newest point of the inputs. */
  readonly keepsLater: boolean;
}

export interface Outputs {
  /** Null: no row is left to be stored. */
  readonly body: Uint8Array | null;
  readonly rows: number;
  /** Rows outside of the window, which are not stored. */
  readonly outside: number;
  /** Rows whose value is no number, which are not stored. */
  readonly withoutValue: number;
  /** For the author of the formula. */
  readonly notes: readonly string[];
}

/** Rows without a version of their own get the default one where the variable keeps versions (rules 2 and 3). */
export function outputsOf(
  { atMs, values, versions, tags }: Pick<ComputedRows, "atMs" | "values" | "versions" | "tags">,
  { variableId, isVersioned, defaultVersion, window, keepsLater }: OutputParts,
): Outputs {
  const data: object[] = [];
  const repeated = new RepeatedDates();
  let outside = 0;
  let withoutValue = 0;
  for (const [nth, ms] of atMs.entries()) {
    const value = values[nth] ?? Number.NaN;
    if (!(ms >= window.fromMs && (keepsLater || ms <= window.toMs))) outside += 1;
    else if (!Number.isFinite(value)) withoutValue += 1;
    else {
      const version = versions?.[nth] || undefined;
      const own = tags?.[nth] ?? undefined;
      repeated.add(ms, isVersioned ? (version ?? defaultVersion) : null);
      data.push({ date: new Date(ms).toISOString(), value, version, tags: own });
    }
  }
  const counts = { rows: data.length, outside, withoutValue, notes: repeated.notes() };
  if (data.length === 0) return { body: null, ...counts };
  const element = { variableId, ...(isVersioned ? { version: defaultVersion } : {}), data };
  return { body: Buffer.from(JSON.stringify([element])), ...counts };
}

/** Rows that overwrite each other. */
class RepeatedDates {
  readonly #seen = new Map<string | null, Set<number>>();
  #count = 0;
  #firstMs = Number.POSITIVE_INFINITY;

  /** `version` null: the variable keeps none. */
  add(ms: number, version: string | null): void {
    const dates = this.#seen.get(version) ?? new Set();
    if (dates.size === 0) this.#seen.set(version, dates);
    if (dates.has(ms)) {
      this.#count += 1;
      this.#firstMs = Math.min(this.#firstMs, ms);
    }
    dates.add(ms);
  }

  notes(): readonly string[] {
    if (this.#count === 0) return [];
    const same = this.#seen.has(null) ? "date" : "date and version";
    const rows = this.#count === 1 ? "1 row has" : `${this.#count} rows have`;
    const first = new Date(this.#firstMs).toISOString();
    return [`${rows} the same ${same} as a row before, first at ${first}: of such rows only the last one stays`];
  }
}
