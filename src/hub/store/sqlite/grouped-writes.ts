/**
 * Writes that wait at one moment share a transaction and a sync of the log, which happens outside the event loop
 * (`log-sync.ts`). Each fails alone, and has succeeded when the sync has covered it; others see it a moment before.
 */
import type { DatabaseSync } from "node:sqlite";
import { Collector } from "#core/collector.ts";
import type { Settled } from "#core/promises.ts";
import { syncFault } from "#core/sql/sqlite/faults.ts";
import { LogSync } from "#core/sql/sqlite/log-sync.ts";
import { write } from "./database.ts";

/** Writes of one transaction: the writer of points waits for its end. */
const GROUP_MAX = 500;

type Work = () => unknown;

export class GroupedWrites {
  readonly #database: DatabaseSync;
  readonly #log: LogSync;
  readonly #writes = new Collector((group: readonly Work[]) => this.#commit(group), GROUP_MAX);

  /** The database has the log, and is not used for writes otherwise. */
  constructor(database: DatabaseSync, path: string) {
    database.exec("PRAGMA synchronous = NORMAL");
    this.#database = database;
    this.#log = new LogSync(database, path);
  }

  /** `work` may be repeated from its beginning. */
  write<T>(work: () => T): Promise<T> {
    return this.#writes.add(work) as Promise<T>;
  }

  /** After the writes that wait. */
  async close(): Promise<void> {
    await this.#writes.idle();
    this.#log.close();
  }

  async #commit(group: readonly Work[]): Promise<readonly Settled<unknown>[]> {
    const done =
      (await this.#performList(group)) ?? (await write(this.#database, () => group.map((work) => this.#perform(work))));
    const fault = await this.#log.run();
    if (fault === null) return done;
    throw syncFault(fault);
  }

  /** Nearly always all succeed, and need no savepoints. Null when one failed, and the transaction was rolled back. */
  async #performList(group: readonly Work[]): Promise<readonly Settled<unknown>[] | null> {
    let isOneFailed = false;
    const performed = write(this.#database, () =>
      group.map((work) => {
        try {
          return { status: "fulfilled" as const, value: work() };
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

  #perform(work: Work): Settled<unknown> {
    this.#database.exec("SAVEPOINT one");
    try {
      const value = work();
      this.#database.exec("RELEASE one");
      return { status: "fulfilled", value };
    } catch (reason) {
      // A full disk ends the whole transaction.
      if (!this.#database.isTransaction) throw reason;
      this.#database.exec("ROLLBACK TO one; RELEASE one");
      return { status: "rejected", reason };
    }
  }
}
