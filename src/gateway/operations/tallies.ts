/**
 * Counters and gauges that change many times a second. Changes are added up here and passed to prom-client when the
 * metrics are scraped: there each change costs the hashing and checking of all its labels.
 */
import { Counter, type CounterConfiguration, Gauge, type GaugeConfiguration } from "prom-client";

type Facts = "name" | "help" | "registers";

/** The sum since the last scrape. */
export interface Cell {
  value: number;
}

/** Cells of a counter, one for each set of labels. */
export class Tally<Label extends string> {
  readonly #cells: (Cell & { readonly labels: Readonly<Record<Label, string>> })[] = [];

  constructor(facts: Pick<CounterConfiguration<Label>, Facts>, labelNames: readonly Label[]) {
    const cells = this.#cells;
    new Counter({
      ...facts,
      labelNames: [...labelNames],
      collect() {
        for (const cell of cells) {
          this.inc(cell.labels, cell.value);
          cell.value = 0;
        }
      },
    });
  }

  /**
   * Creates the series. Keep the cell: a second call with the same labels returns another cell, which counts with it.
   */
  cell(labels: Readonly<Record<Label, string>>): Cell {
    const cell = { labels, value: 0 };
    this.#cells.push(cell);
    return cell;
  }
}

/** The last value of each name. */
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
