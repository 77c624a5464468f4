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
}

/** Rows without a version of their own get the default one where the variable keeps versions (rules 2 and 3). */
export function outputsOf(
  { atMs, values, versions, tags }: Pick<ComputedRows, "atMs" | "values" | "versions" | "tags">,
  { variableId, isVersioned, defaultVersion, window, keepsLater }: OutputParts,
): Outputs {
  const data: object[] = [];
  let outside = 0;
  let withoutValue = 0;
  for (const [nth, ms] of atMs.entries()) {
    const value = values[nth] ?? Number.NaN;
    if (!(ms >= window.fromMs && (keepsLater || ms <= window.toMs))) outside += 1;
    else if (!Number.isFinite(value)) withoutValue += 1;
    else {
      const version = versions?.[nth] || undefined;
      const own = tags?.[nth] ?? undefined;
      data.push({ date: new Date(ms).toISOString(), value, version, tags: own });
    }
  }
  if (data.length === 0) return { body: null, rows: 0, outside, withoutValue };
  const element = { variableId, ...(isVersioned ? { version: defaultVersion } : {}), data };
  return { body: Buffer.from(JSON.stringify([element])), rows: data.length, outside, withoutValue };
}
