/** The bytes that runs are going to write into the spool. */

export interface Reservation {
  readonly bytes: number;
  readonly untilMs: number;
}

export class Reservations {
  readonly #runs = new Map<string, Reservation>();
  #bytes = 0;

  /** The sum of all. */
  get bytes(): number {
    return this.#bytes;
  }

  of(id: string): number {
    return this.#runs.get(id)?.bytes ?? 0;
  }

  set(id: string, next: Reservation | null): void {
    this.#bytes += (next?.bytes ?? 0) - this.of(id);
    if (next === null) this.#runs.delete(id);
    else this.#runs.set(id, next);
  }

  expire(nowMs: number): void {
    for (const [id, { untilMs }] of this.#runs) if (untilMs < nowMs) this.set(id, null);
  }
}
