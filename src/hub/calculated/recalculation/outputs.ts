/** The computed rows of a part as the body of a push. */
import { createHash } from "node:crypto";
import { compressedPieces } from "../../push/body-compression.ts";
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
  /** The push, compressed as bodies of the queue are. Null: no row is left to be stored. */
  readonly body: Uint8Array | null;
  /** Of the push before it was compressed. */
  readonly digest: string;
  readonly rows: number;
  /** Rows outside of the window, which are not stored. */
  readonly outside: number;
  /** Rows whose value is no number, which are not stored. */
  readonly withoutValue: number;
  /** For the author of the formula. */
  readonly notes: readonly string[];
}

/** A million rows are many times as large as text: so much of it is held at a time. */
const PIECE_CHARACTERS = 256 * 1024;

type Rows = Pick<ComputedRows, "atMs" | "values" | "versions" | "tags">;

/** Rows without a version of their own get the default one where the variable keeps versions (rules 2 and 3). */
export async function outputsOf(computed: Rows, parts: OutputParts): Promise<Outputs> {
  const { variableId, isVersioned, defaultVersion } = parts;
  const counts = { rows: 0, outside: 0, withoutValue: 0 };
  const repeated = isAscending(computed.atMs) ? null : new RepeatedDates();
  const hash = createHash("sha256");
  const element = { variableId, ...(isVersioned ? { version: defaultVersion } : {}), data: [] };
  const pieceOf = (text: string) => {
    const piece = Buffer.from(text);
    hash.update(piece);
    return piece;
  };
  const pieces = function* () {
    let text = JSON.stringify([element]).slice(0, -"]}]".length);
    for (const row of keptRows(computed, parts, counts)) {
      repeated?.add(row.atMs, isVersioned ? (row.version ?? defaultVersion) : null);
      const { atMs, ...others } = row;
      text += `${counts.rows === 0 ? "" : ","}${JSON.stringify({ date: new Date(atMs).toISOString(), ...others })}`;
      counts.rows += 1;
      if (text.length < PIECE_CHARACTERS) continue;
      yield pieceOf(text);
      text = "";
    }
    yield pieceOf(`${text}]}]`);
  };
  const body = await compressedPieces(pieces());
  const notes = repeated?.notes() ?? [];
  return { body: counts.rows === 0 ? null : body, digest: hash.digest("hex"), ...counts, notes };
}

interface KeptRow {
  readonly atMs: number;
  readonly value: number;
  readonly version: string | undefined;
  readonly tags: Readonly<Record<string, string>> | undefined;
}

/** Rows that are stored; counts the others. */
function* keptRows(
  { atMs, values, versions, tags }: Rows,
  { window, keepsLater }: OutputParts,
  counts: { outside: number; withoutValue: number },
): Generator<KeptRow> {
  for (const [nth, ms] of atMs.entries()) {
    const value = values[nth] ?? Number.NaN;
    if (!(ms >= window.fromMs && (keepsLater || ms <= window.toMs))) counts.outside += 1;
    else if (!Number.isFinite(value)) counts.withoutValue += 1;
    else yield { atMs: ms, value, version: versions?.[nth] || undefined, tags: tags?.[nth] ?? undefined };
  }
}

/** Then no two rows have one date. */
function isAscending(atMs: Float64Array): boolean {
  return atMs.every((ms, at) => at === 0 || ms > (atMs[at - 1] ?? ms));
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
