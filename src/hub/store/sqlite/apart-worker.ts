/** The thread's side of `apart.ts`. */
import { workerData } from "node:worker_threads";
import type { Statement } from "../database.ts";
import type { ApartThread } from "./apart.ts";
import { openDatabase, statements } from "./database.ts";
import { answer } from "./driver.ts";

/** Nothing else waits for this thread. */
const BLOCKING_MS = 5_000;

const { path } = workerData as ApartThread;
const tools = statements(openDatabase({ path, migrations: null, timeoutMs: BLOCKING_MS, readOnly: true }));

export function perform(statement: Statement): unknown {
  return answer(tools, statement);
}
