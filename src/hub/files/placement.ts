/** Places small contents that come at one moment as one list, by a thread; one alone, and what fails, by `placeOne`. */
import { DiskThread } from "../../support/disk-thread.ts";
import type { Placed } from "./placement-work.ts";

/** Contents of one list; with `SMALL_BYTES` they are this much memory. */
const LIST_MAX = 64;

interface Waiting {
  readonly content: Placed;
  resolve(): void;
  reject(thrown: unknown): void;
}

export class Placement {
  readonly #thread: DiskThread<readonly Placed[], readonly boolean[]>;
  readonly #placeOne: (content: Placed) => Promise<void>;
  #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(placeOne: (content: Placed) => Promise<void>) {
    this.#placeOne = placeOne;
    // Compiled, this file is JavaScript and so is the worker beside it.
    const file = import.meta.url.endsWith(".ts") ? "./placement-worker.ts" : "./placement-worker.js";
    this.#thread = new DiskThread({ module: new URL(file, import.meta.url), data: null });
  }

  /** Durable when it resolves. */
  place(content: Placed): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ content, resolve, reject });
      if (!this.#isRunning) void this.#run();
    });
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      // Contents of the same turn of the event loop come together.
      await new Promise((resolve) => setImmediate(resolve));
      await this.#placeAll(this.#waiting.splice(0, LIST_MAX));
    }
    this.#isRunning = false;
  }

  async #placeAll(list: readonly Waiting[]): Promise<void> {
    // A content alone is worth no message to the thread.
    const done = list.length < 2 ? null : await this.#thread.ask(list.map(({ content }) => content));
    await Promise.all(
      list.map(({ content, resolve, reject }, at) =>
        done?.[at] === true ? resolve() : this.#placeOne(content).then(resolve, reject),
      ),
    );
  }
}
