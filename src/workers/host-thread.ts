/**
 * The entrance of a thread of a mapping host. It gives up all rights that mappers must not have before a mapper can be
 * loaded. The modules of the tasks are imported only after the compile cache is in use.
 */
import { enableCompileCache } from "node:module";
import { type MessagePort, workerData } from "node:worker_threads";
import { dropLinks, returnCache } from "./compiled-modules.ts";
import type { TaskRequest, ThreadStart } from "./messages.ts";

/** Without a request, it returns when the thread is loaded. */
export type ThreadTask =
  | { readonly request: TaskRequest; readonly port: MessagePort }
  | { readonly request: null; readonly port: null };

const { caches, cachesFolder, taken, own } = workerData as ThreadStart;
const cache = caches[Atomics.add(taken, 0, 1)];
if (cache !== undefined) enableCompileCache(cache);
const { captureOutput, performTask, takeOwn } = await import("./thread-tasks.ts");
const { confineThread } = await import("./thread-rights.ts");
// A fault of this mapper is reported when a task asks for it.
if (own !== null) await takeOwn(own).catch(() => undefined);
if (cache !== undefined) returnCache(cache);
// Also in a thread for which no link was left.
if (cachesFolder !== null) dropLinks(cachesFolder);
await confineThread();
captureOutput();
// A thread of a mapper could be started without any limits. Absent when the process was started without permissions.
if (process.permission !== undefined) process.permission.drop("worker");

export async function perform({ request, port }: ThreadTask): Promise<void> {
  if (request !== null) await performTask(request, port);
}
