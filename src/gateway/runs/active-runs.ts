/** The runs whose steps are in progress, and the runs and drops for which no step may begin. */

interface ActiveStep {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

export class ActiveRuns {
  readonly #steps = new Map<string, ActiveStep>();
  /** Runs that may not take a step, as a command works on them. */
  readonly #excluded = new Set<string>();
  readonly #changed = new Set<string>();
  readonly #notified = new Set<string>();
  readonly #closedDrops = new Set<string>();

  /** The number of runs whose steps are in progress. */
  get size(): number {
    return this.#steps.size;
  }

  /** Whether a step of the run is in progress, or a command works on the run. */
  has(runId: string): boolean {
    return this.#excluded.has(runId) || this.#steps.has(runId);
  }

  begin(runId: string, step: ActiveStep): void {
    this.#steps.set(runId, step);
  }

  end(runId: string): void {
    this.#steps.delete(runId);
    this.#notified.delete(runId);
  }

  /** Something new is known about a run. It does not wait for a reason that the step in progress finds. */
  notify(runId: string): void {
    if (this.has(runId)) this.#notified.add(runId);
  }

  isNotified(runId: string): boolean {
    return this.#notified.has(runId);
  }

  /** Begins no step of the run until `readmit`, and resolves when the step in progress has been stopped. */
  async exclude(runId: string): Promise<void> {
    this.#excluded.add(runId);
    await this.stop([runId]);
  }

  readmit(runId: string): void {
    this.#excluded.delete(runId);
    this.#changed.add(runId);
  }

  /**
   * Whether a command worked on the run since `forgetChanges`: a copy that was read meanwhile may be
   * outdated.
   */
  isChanged(runId: string): boolean {
    return this.#changed.has(runId);
  }

  forgetChanges(): void {
    this.#changed.clear();
  }

  closeDrops(drops: readonly string[]): void {
    for (const drop of drops) this.#closedDrops.add(drop);
  }

  reopenDrops(drops: readonly string[]): void {
    for (const drop of drops) this.#closedDrops.delete(drop);
  }

  isClosed(drop: string): boolean {
    return this.#closedDrops.has(drop);
  }

  /** Stops the steps of these runs that are in progress, and resolves when they have ended. */
  async stop(runIds: readonly string[]): Promise<void> {
    const steps = runIds.map((id) => this.#steps.get(id));
    for (const step of steps) step?.stop.abort();
    await Promise.all(steps.map((step) => step?.ended));
  }

  stopAll(): void {
    for (const { stop } of this.#steps.values()) stop.abort();
  }

  /** Resolves when the steps that are in progress now have ended. */
  async ended(): Promise<void> {
    await Promise.allSettled([...this.#steps.values()].map(({ ended }) => ended));
  }
}
