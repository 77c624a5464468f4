/**
 * The entrance of a thread of a mapping host. It gives up all rights that mappers must not have before a mapper can be
 * loaded.
 */
import { type MessagePort, workerData } from "node:worker_threads";
import { confineThread } from "#core/threads/rights.ts";
import { dropLinks, returnCache } from "./compiled-modules.ts";
import type { RangeRequest, TaskRequest, ThreadStart } from "./messages.ts";
import { captureOutput, performRange, performTask, takeOwn, watchFaults } from "./thread-tasks.ts";

/** Without a request, it returns when the thread is loaded. */
export type ThreadTask =
  | { readonly request: TaskRequest; readonly port: MessagePort }
  | { readonly ranged: RangeRequest; readonly meet: MessagePort; readonly port: MessagePort }
  | { readonly request: null; readonly port: null };

const { cachesFolder, own } = workerData as ThreadStart;
const cache = process.env["NODE_COMPILE_CACHE"] ?? "";
delete process.env["NODE_COMPILE_CACHE"];
// A fault of this mapper is reported when a task asks for it.
if (own !== null) await takeOwn(own).catch(() => undefined);
if (cache !== "") returnCache(cache);
// Also in a thread for which no link was left.
if (cachesFolder !== null) dropLinks(cachesFolder);
await confineThread("a mapper");
captureOutput();
watchFaults();
// A thread of a mapper could be started without any limits. Absent when the process was started without permissions.
if (process.permission !== undefined) process.permission.drop("worker");

export async function perform(task: ThreadTask): Promise<void> {
  if ("ranged" in task) await performRange(task.ranged, task.meet, task.port);
  else if (task.request !== null) await performTask(task.request, task.port);
}
