/**
 * Decides whether a migration takes more files: not outside of its hours, not after too many errors, and not before
 * ended runs were counted.
 */
import type { Gateway, IntakeRule } from "../../gateway.ts";
import type { Throttle } from "./throttle.ts";
import type { Watch } from "./watch.ts";

export class Intake implements IntakeRule {
  readonly byGroups: boolean;
  readonly #watch: Watch;
  readonly #throttle: Throttle;
  /** True when files were not taken because ended runs were not counted yet. */
  #waiting = false;
  #deciding: Promise<void> | null = null;

  constructor(watch: Watch, throttle: Throttle, byGroups: boolean) {
    this.#watch = watch;
    this.#throttle = throttle;
    this.byGroups = byGroups;
  }

  readonly isClosed = (): boolean => {
    if (!this.#watch.isUndecided) return this.#throttle.isIntakeClosed;
    this.#waiting = true;
    return true;
  };

  /** Counts ended runs, closes the intake after too many errors, and otherwise lets the next files be taken. */
  decide(gateway: Gateway): Promise<void> {
    this.#deciding ??= this.#decide(gateway).finally(() => {
      this.#deciding = null;
    });
    return this.#deciding;
  }

  async #decide(gateway: Gateway): Promise<void> {
    do {
      const tooMuch = await this.#watch.tooMuch(gateway.ledger);
      if (tooMuch !== null) this.#throttle.close(tooMuch);
      if (!this.#waiting) continue;
      this.#waiting = false;
      if (!this.isClosed()) await gateway.pulse();
    } while (this.#watch.isUndecided);
  }
}
