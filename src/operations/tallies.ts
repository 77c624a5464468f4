/**
 * Counters and gauges that change many times a second. What they come to is added up here and handed to prom-client when somebody asks for
 * it: there each change costs the hashing and checking of all its labels.
 */
import { Counter, type CounterConfiguration, Gauge, type GaugeConfiguration } from "prom-client";

type Facts = "name" | "help" | "registers";

interface Cell<Label extends string> {
  readonly labels: Readonly<Record<Label, string>>;
  value: number;
}

/** One series for each set of labels that was ever counted. */
export class Tally<Label extends string> {
  readonly #cells = new Map<string, Cell<Label>>();

  constructor(facts: Pick<CounterConfiguration<Label>, Facts>, labelNames: readonly Label[]) {
    const cells = this.#cells;
    new Counter({
      ...facts,
      labelNames: [...labelNames],
      collect() {
        for (const cell of cells.values()) {
          this.inc(cell.labels, cell.value);
          cell.value = 0;
        }
      },
    });
  }

  /** `key` stands for the labels, which are asked for when it is counted for the first time. */
  add(key: string, by: number, labels: () => Readonly<Record<Label, string>>): void {
    let cell = this.#cells.get(key);
    if (cell === undefined) {
      cell = { labels: labels(), value: 0 };
      this.#cells.set(key, cell);
    }
    cell.value += by;
  }
}

/** The last value of each that has a name. */
export class Readings<Label extends string> {
  readonly #values = new Map<string, number>();

  constructor(facts: Pick<GaugeConfiguration<Label>, Facts>, label: Label) {
    const values = this.#values;
    new Gauge<string>({
      ...facts,
      labelNames: [label],
      collect() {
        for (const [name, value] of values) this.set({ [label]: name }, value);
      },
    });
  }

  set(name: string, value: number): void {
    this.#values.set(name, value);
  }

  add(name: string, by: number): void {
    this.#values.set(name, (this.#values.get(name) ?? 0) + by);
  }
}
