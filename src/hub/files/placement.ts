/** Places small contents that come at one moment as one list, by a thread; one alone, and what fails, by `placeOne`. */
import type { DiskThread } from "../../support/disk-thread.ts";
import type { FolderAnswer, FolderOrder, Placed } from "./folder-work.ts";

/** Contents of one list; with `SMALL_BYTES` they are this much memory. */
const LIST_MAX = 64;

interface Waiting {
  readonly content: Placed;
  resolve(): void;
  reject(thrown: unknown): void;
}

export class Placement {
  readonly #thread: DiskThread<FolderOrder, FolderAnswer>;
  readonly #placeOne: (content: Placed) => Promise<void>;
  #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(thread: DiskThread<FolderOrder, FolderAnswer>, placeOne: (content: Placed) => Promise<void>) {
    this.#thread = thread;
    this.#placeOne = placeOne;
  }

  /** Durable when it resolves. */
  place(content: Placed): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ content, resolve, reject });
      if (!this.#isRunning) void this.#run();
    });
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
    const done =
      list.length < 2 ? null : await this.#thread.ask({ kind: "place", list: list.map(({ content }) => content) });
    await Promise.all(
      list.map(({ content, resolve, reject }, at) =>
        done?.[at] === true ? resolve() : this.#placeOne(content).then(resolve, reject),
      ),
    );
  }
}
