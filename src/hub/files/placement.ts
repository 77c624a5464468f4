/** Places small contents that come at one moment as one list, by a thread; and what fails, by `placeOne`. */
import { Collector } from "#core/collector.ts";
import { settleEach } from "#core/settled.ts";
import type { DiskThread } from "#core/threads/disk-thread.ts";
import type { FolderAnswer, FolderOrder, Placed } from "./folder-work.ts";

/** Contents of one list; with `SMALL_BYTES` they are this much memory. */
const LIST_MAX = 64;

/** A content is durable when its promise resolves. */
export function placement(
  thread: DiskThread<FolderOrder, FolderAnswer>,
  placeOne: (content: Placed) => Promise<void>,
): Collector<Placed, void> {
  return new Collector(async (list) => {
    const done = await thread.ask({ kind: "place", list });
    return await settleEach(list, async (content, at) => {
      if (done?.[at] !== true) await placeOne(content);
    });
  }, LIST_MAX);
}
