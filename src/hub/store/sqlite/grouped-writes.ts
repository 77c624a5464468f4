/**
 * Writes that wait at one moment share a transaction and a sync of the log, which happens outside the event loop
 * (`log-sync.ts`). Each fails alone, and has succeeded when the sync has covered it; others see it a moment before.
 */
import type { DatabaseSync } from "node:sqlite";
import { diskFault, isSqliteTrouble } from "../../../sql/sqlite/faults.ts";
import { LogSync } from "../../../sql/sqlite/log-sync.ts";
import { write } from "./database.ts";

/** Writes of one transaction: the writer of points waits for its end. */
const GROUP_MAX = 500;

interface Waiting {
  /** Within a transaction. Returns what is called once it is durable. */
  readonly perform: () => () => void;
  readonly reject: (thrown: unknown) => void;
}

export class GroupedWrites {
  readonly #database: DatabaseSync;
  readonly #log: LogSync;
  #waiting: Waiting[] = [];
  #running: Promise<void> | null = null;

  /** The database has the log, and is not used for writes otherwise. */
  constructor(database: DatabaseSync, path: string) {
    database.exec("PRAGMA synchronous = NORMAL");
    this.#database = database;
    this.#log = new LogSync(database, path);
  }

  /** `work` may be repeated from its beginning. */
  write<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const perform = () => {
        const result = work();
        return () => resolve(result);
      };
      this.#waiting.push({ perform, reject });
      this.#running ??= this.#run();
    });
  }

  /** After the writes that wait. */
  async close(): Promise<void> {
    await this.#running;
    this.#log.close();
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Writes of the same turn of the event loop come together.
      await new Promise((resolve) => setImmediate(resolve));
      await this.#commit(this.#waiting.splice(0, GROUP_MAX));
    }
    this.#running = null;
  }

  async #commit(group: readonly Waiting[]): Promise<void> {
    try {
      const ends =
        (await this.#performList(group)) ?? (await write(this.#database, () => group.map((one) => this.#perform(one))));
      await this.#synced();
      for (const end of ends) end();
    } catch (thrown) {
      for (const { reject } of group) reject(thrown);
    }
  }

  /** Nearly always all succeed, and need no savepoints. Null when one failed, and the transaction was rolled back. */
  async #performList(group: readonly Waiting[]): Promise<readonly (() => void)[] | null> {
    let isOneFailed = false;
    const performed = write(this.#database, () =>
      group.map(({ perform }) => {
        try {
          return perform();
        } catch (thrown) {
          isOneFailed = true;
          throw thrown;
        }
      }),
    );
    return await performed.catch((thrown: unknown) => {
      if (isOneFailed) return null;
      throw thrown;
    });
  }

  #perform({ perform, reject }: Waiting): () => void {
    this.#database.exec("SAVEPOINT one");
    try {
      const end = perform();
      this.#database.exec("RELEASE one");
      return end;
    } catch (thrown) {
      // A full disk ends the whole transaction.
      if (!this.#database.isTransaction) throw thrown;
      this.#database.exec("ROLLBACK TO one; RELEASE one");
      return () => reject(thrown);
    }
  }

  #synced(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#log.begin((fault) => {
        if (fault === null) resolve();
        else reject(isSqliteTrouble(fault) ? fault : diskFault(fault));
      });
    });
  }
}
