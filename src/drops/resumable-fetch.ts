/** A fetch that goes on where a broken connection left it. */
import type { FetchedFile, FileEntry } from "../model.ts";
import { HeadgateError, wordsOf } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import { type Destination, openReceiver, type Receiver } from "./receive.ts";

/** Breaks that one fetch survives; after that, and after a break that came before any byte, it is begun anew later. */
const RESUMES_MAX = 10;

/**
 * Calls `attempt` until the receiver has all bytes. Each attempt goes on at `receiver.bytes` (or restarts the receiver), and
 * verifies by size and time, before and after, that it is still the same version. The digest is computed over every byte on
 * its way to the disk; what an earlier process had written is never trusted.
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
          "the connection broke; the fetch goes on where it was",
        );
      }
    }
  } finally {
    await receiver.close();
  }
}
