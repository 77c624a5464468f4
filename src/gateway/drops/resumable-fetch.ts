/** A fetch that resumes after a broken connection. */

import { HeadgateError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { FetchedFile, FileEntry } from "../model.ts";
import { type Destination, openReceiver, type Receiver } from "./receive.ts";

/**
 * Breaks that one fetch survives; after that, and after a break before any byte, a later attempt begins from
 * the start.
 */
const RESUMES_MAX = 10;

/**
 * Calls `attempt` until the receiver has all bytes. Each attempt continues at `receiver.bytes` (or restarts
 * the receiver), and verifies by size and time, before and after, that the version is still the same. The
 * digest covers every byte on its way to the disk; bytes that an earlier process wrote are never trusted.
 */
export async function fetchResuming(
  drop: { readonly name: string; readonly log: Logger },
  entry: FileEntry,
  destination: Destination,
  signal: AbortSignal,
  attempt: (receiver: Receiver) => Promise<void>,
): Promise<FetchedFile> {
  const receiver = await openReceiver(drop.name, entry, destination);
  try {
    for (let resumes = 0; ; resumes += 1) {
      const before = receiver.bytes;
      try {
        await attempt(receiver);
        return await receiver.finish();
      } catch (thrown) {
        const broke = thrown instanceof HeadgateError && thrown.code === "HG-DROP-001";
        if (!broke || signal.aborted || resumes >= RESUMES_MAX || receiver.bytes <= before) throw thrown;
        drop.log.info(
          { drop: drop.name, path: entry.path, bytes: receiver.bytes, reason: wordsOf(thrown) },
          "the connection broke; the fetch resumes",
        );
      }
    }
  } finally {
    await receiver.close();
  }
}
