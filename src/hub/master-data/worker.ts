/**
 * The thread that reads and applies files of master data, one after another: a large workbook takes seconds of a
 * processor, and so does a transaction of SQLite with its rows.
 */
import { workerData } from "node:worker_threads";
import { isDatabaseTrouble } from "../../sql/trouble.ts";
import { wordsOf } from "../../support/errors.ts";
import { openMasterData } from "../store/open.ts";
import { type MasterDataJob, processMasterData } from "./process.ts";
import type { MasterDataThread, Processed } from "./service.ts";

/** Limit on the refused rows of a report that is kept in the store anyway. */
const REFUSED_MAX = 100;

const { store: options } = workerData as MasterDataThread;

/** The result is plain data, since errors lose their kind between threads. */
export async function perform(job: MasterDataJob): Promise<Processed> {
  const store = openMasterData(options);
  try {
    const report = await processMasterData(job, store, new AbortController().signal);
    const refused = report.items.filter(({ result }) => result === "refused").slice(0, REFUSED_MAX);
    return { kind: "reported", report: { ...report, items: job.run === null ? report.items : refused } };
  } catch (thrown) {
    if (!isDatabaseTrouble(thrown)) throw thrown;
    return { kind: "trouble", words: wordsOf(thrown) };
  } finally {
    await store.close();
  }
}
