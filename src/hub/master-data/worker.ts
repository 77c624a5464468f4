/**
 * The thread that reads and applies files of master data, one after another: a large workbook takes seconds of a
 * processor, and so does a transaction of SQLite with its rows.
 */
import { workerData } from "node:worker_threads";
import { wordsOf } from "#core/errors.ts";
import { isDatabaseTrouble } from "#core/sql/trouble.ts";
import { partsOfRows } from "../store/master-data.ts";
import { openMasterData } from "../store/open.ts";
import { StructureHeld } from "../store/structure-hold.ts";
import { type MasterDataJob, processMasterData } from "./process.ts";
import type { MasterDataThread, Processed } from "./service.ts";

const { store: options } = workerData as MasterDataThread;

/** The result is plain data, since errors lose their kind between threads. */
export async function perform(job: MasterDataJob): Promise<Processed> {
  const store = openMasterData(options);
  try {
    const { items, ...header } = await processMasterData(job, store, new AbortController().signal);
    const firstRefused = items.find(({ result }) => result === "refused");
    // The report of a run is kept in the store anyway.
    return { kind: "reported", report: { header, firstRefused, parts: job.run === null ? partsOfRows(items) : [] } };
  } catch (thrown) {
    if (!isDatabaseTrouble(thrown) && !(thrown instanceof StructureHeld)) throw thrown;
    return { kind: "trouble", words: wordsOf(thrown) };
  } finally {
    await store.close();
  }
}
