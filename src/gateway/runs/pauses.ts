/** Drops that are not polled and triggers that claim nothing, as the ledger has it. */
import type { Ledger } from "../ledger/ledger.ts";
import type { Pause } from "../model.ts";

/** The author of pauses that no person ordered. */
export const PAUSED_BY_GATEWAY = "the gateway";

type PauseLedger = Pick<Ledger, "pauses" | "pause" | "resume">;

export class Pauses {
  readonly #ledger: PauseLedger;
  readonly #onRead: (all: readonly Pause[]) => void;
  #all: readonly Pause[] = [];

  private constructor(ledger: PauseLedger, onRead: (all: readonly Pause[]) => void) {
    this.#ledger = ledger;
    this.#onRead = onRead;
  }

  /** Calls `onRead` now, and after each change. */
  static async read(ledger: PauseLedger, onRead: (all: readonly Pause[]) => void = () => undefined): Promise<Pauses> {
    const pauses = new Pauses(ledger, onRead);
    await pauses.#read();
    return pauses;
  }

  async #read(): Promise<void> {
    this.#all = await this.#ledger.pauses();
    this.#onRead(this.#all);
  }

  /** Other nodes and commands may have paused or resumed something. */
  refresh(): Promise<void> {
    return this.#read();
  }

  list(): readonly Pause[] {
    return this.#all;
  }

  /** Returns the reason of the pause in words, or null when it is not paused. */
  reason(kind: Pause["kind"], name: string): string | null {
    const pause = this.#all.find((one) => one.kind === kind && one.name === name);
    return pause === undefined ? null : pauseWords(pause);
  }

  /** The health entries of paused triggers; a paused drop has its own. */
  health(): readonly { readonly part: string; readonly ready: true; readonly reason: string }[] {
    return this.#all
      .filter(({ kind }) => kind === "trigger")
      .map((pause) => ({ part: `trigger ${pause.name}`, ready: true, reason: pauseWords(pause) }));
  }

  /** Pauses that no person ordered, with their reasons in words. */
  byGateway(): readonly { readonly pause: Pause; readonly words: string }[] {
    return this.#all.flatMap((pause) => (pause.by === PAUSED_BY_GATEWAY ? [{ pause, words: pauseWords(pause) }] : []));
  }

  async set(pause: Omit<Pause, "at">): Promise<Pause> {
    const set = await this.#ledger.pause(pause);
    await this.#read();
    return set;
  }

  /** Returns false when the drop or trigger was not paused. */
  async end(kind: Pause["kind"], name: string): Promise<boolean> {
    const ended = await this.#ledger.resume(kind, name);
    await this.#read();
    return ended;
  }
}

/** `drop field is paused since 2026-03-01T10:00:00.000Z by ann: the server moves` */
function pauseWords({ kind, name, at, by, why }: Pause): string {
  const reason = why === "" ? "" : `: ${why}`;
  return `the ${kind} ${name} is paused since ${at} by ${by}${reason} (\`headgate resume ${name}\`)`;
}
