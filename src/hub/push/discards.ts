import type { Outcome } from "../store/store.ts";

type Discarded = Outcome["discarded"][number];
const EXAMPLE_CHARACTERS = 60;

/**
 * Counts by target and reason. Beyond the limit of entries, targets are summed up by reason, so that no count is lost.
 */
export class Discards {
  private readonly entries = new Map<string, Discarded>();
  private readonly entriesMax: number;

  constructor(entriesMax: number) {
    this.entriesMax = entriesMax;
  }

  /** `example`: the offending text; only the first one is reported. */
  add(target: string, reason: string, count: number, example?: string): void {
    if (count === 0) return;
    if (this.entries.size < this.entriesMax || this.entries.has(keyOf(target, reason)))
      this.sum(target, reason, count, example);
    else this.sum("(further targets)", reason, count, example);
  }

  list(): Discarded[] {
    return [...this.entries.values()];
  }

  private sum(target: string, reason: string, count: number, example: string | undefined): void {
    const key = keyOf(target, reason);
    const known = this.entries.get(key);
    if (known !== undefined) known.count += count;
    else
      this.entries.set(key, {
        target,
        reason: example === undefined ? reason : `${reason}: ${JSON.stringify(example.slice(0, EXAMPLE_CHARACTERS))}`,
        count,
      });
  }
}

function keyOf(target: string, reason: string): string {
  return `${target}\n${reason}`;
}
