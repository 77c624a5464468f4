/** The share of errors of a migration, so that it can stop early. Counted since this process began. */
import type { Run } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";

/** Fewer files allow no conclusion. */
const FILES_MIN = 10;

export class ErrorShare {
  readonly #max: number;
  #files = 0;
  #badFiles = 0;
  #readings = 0;
  #badReadings = 0;
  #first: string | null = null;

  /** `max`: from 0 to 1. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a file that came to rest. */
  add({ path, state, points, reason }: Pick<Run, "path" | "state" | "points" | "reason">): void {
    const refused = (reason?.rejectedByReason ?? []).reduce((sum, { count }) => sum + count, 0);
    const { needsAttention, end } = RUN_STATES[state];
    const isBad = needsAttention && end !== "delivered";
    this.#files += 1;
    this.#badFiles += isBad ? 1 : 0;
    this.#readings += points.mapped + refused;
    this.#badReadings += points.rejected + refused;
    if (isBad || refused > 0 || points.rejected > 0)
      this.#first ??= `${path} is ${state}${reason === null ? "" : `: ${reason.message}`}`;
  }

  /** Why no more files should be taken, in words; null while the share is within the limit. */
  get reason(): string | null {
    if (this.#files < FILES_MIN) return null;
    const [files, readings] = [this.#badFiles / this.#files, this.#badReadings / Math.max(1, this.#readings)];
    if (Math.max(files, readings) <= this.#max) return null;
    const what =
      files > this.#max
        ? `${this.#badFiles} of ${this.#files} files (${percent(files)}) need a person`
        : `${this.#badReadings} of ${this.#readings} readings (${percent(readings)}) were refused`;
    return `${what}, which is more than ${percent(this.#max)}; first ${this.#first}`;
  }
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}

/** `5%` or `5 %`, as a share from 0 to 1; undefined when the text is not a share. */
export function parseShare(text: string): number | undefined {
  const [, digits] = /^(\d+(?:\.\d+)?)\s*%$/.exec(text.trim()) ?? [];
  const share = Number(digits) / 100;
  return share >= 0 && share <= 1 ? share : undefined;
}
