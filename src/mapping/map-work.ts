/**
 * What the `map` of a mapper has begun. Readings of work that nobody awaits come when the file is written already, and
 * would be lost without a word: so whatever still runs when `map` has ended refuses the file, and what comes even later
 * is reported.
 */
import { AsyncLocalStorage, createHook } from "node:async_hooks";
import type { Reason } from "../model.ts";
import { reasonOf } from "./rejections.ts";

const TIMERS: ReadonlyMap<string, string> = new Map([
  ["Timeout", "a timer"],
  ["Immediate", "setImmediate"],
]);

const present = new AsyncLocalStorage<MapWork>();
/** The functions of the thread, before a mapper can change them. */
const { nextTick } = process;

/** Timers belong to the file in whose `map` they are made, also beside other files. Promises would cost too much. */
const timers = createHook({
  init(id, kind, _, resource) {
    if (TIMERS.has(kind)) present.getStore()?.timerBegun(id, kind, resource);
  },
  destroy: (id) => timerEnded(id),
  trackPromises: false,
});

const worksOfTimers = new Map<number, MapWork>();

function timerEnded(id: number): void {
  worksOfTimers.get(id)?.timerEnded(id);
  worksOfTimers.delete(id);
}

/** The file whose mapper began what runs now. */
export function presentWork(): MapWork | undefined {
  return present.getStore();
}

interface Timer {
  readonly kind: string;
  /** The runtime's record of it. */
  readonly resource: object;
}

export class MapWork {
  /** From then on nothing that the mapper gives counts. */
  hasEnded = false;
  /** How often each part of the contract is in use, by its name. */
  readonly #uses = new Map<string, number>();
  readonly #timers = new Map<number, Timer>();
  #late: string | null = null;
  #report: ((words: string) => void) | null = null;

  /** Performs `map`. */
  async run(map: () => Promise<void>): Promise<void> {
    timers.enable();
    await present.run(this, map);
  }

  /** False, and noted, when `map` has ended. Otherwise `ended` is called later. */
  begun(use: string): boolean {
    if (this.hasEnded) this.comesLate(`${use} was called`);
    else this.#uses.set(use, (this.#uses.get(use) ?? 0) + 1);
    return !this.hasEnded;
  }

  ended(use: string): void {
    const left = (this.#uses.get(use) ?? 0) - 1;
    if (left > 0) this.#uses.set(use, left);
    else this.#uses.delete(use);
  }

  async during<Value>(use: string, work: () => Promise<Value>): Promise<Value> {
    const isInTime = this.begun(use);
    try {
      return await work();
    } finally {
      if (isInTime) this.ended(use);
    }
  }

  timerBegun(id: number, kind: string, resource: object): void {
    if (this.#report !== null) return;
    this.#timers.set(id, { kind, resource });
    worksOfTimers.set(id, this);
  }

  timerEnded(id: number): void {
    this.#timers.delete(id);
  }

  /** Called for each use of the mapper after the end of `map`. */
  comesLate(words: string): void {
    const isFirst = this.#late === null;
    this.#late ??= words;
    if (isFirst) this.#report?.(words);
  }

  /** Called when `map` has ended: why the file cannot be written, or null. */
  async end(): Promise<Reason | null> {
    const running = this.#running();
    this.hasEnded = true;
    if (running.length > 0) return leftRunning(running);
    // Promises that nobody awaited go on now, as far as they wait for nothing else.
    await new Promise<void>((resolve) => nextTick(resolve));
    const since = this.#running();
    return since.length > 0 ? leftRunning(since) : this.lateReason();
  }

  #running(): readonly string[] {
    const running = new Set(this.#uses.keys());
    for (const { kind, resource } of this.#timers.values())
      if (Reflect.get(resource, "_destroyed") !== true) running.add(TIMERS.get(kind) ?? kind);
    return [...running];
  }

  /** Something came since `map` has ended. */
  lateReason(): Reason | null {
    if (this.#late === null) return null;
    return reasonOf("HG-MAP-040", `${this.#late} after \`map\` had ended, so what it gives would be lost`);
  }

  /** The file is written, or refused. What comes now is reported. */
  seal(report: (words: string) => void): void {
    this.hasEnded = true;
    this.#report = report;
    for (const id of this.#timers.keys()) worksOfTimers.delete(id);
    this.#timers.clear();
  }
}

function leftRunning(running: readonly string[]): Reason {
  const what = running.join(", ");
  return reasonOf("HG-MAP-040", `\`map\` ended while this still ran, so what it gives would be lost: ${what}`);
}
