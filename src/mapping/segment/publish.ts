/** Gives complete segments their names. */
import { linkSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import { syncDirectory, syncFile } from "#core/durable.ts";
import { systemCode } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { type Settled, settleEach } from "#core/promises.ts";
import { ROWS_PART } from "./layout.ts";

/** A complete segment that is not synced and has no names yet. */
export interface SegmentPart {
  readonly part: string;
  /** The full paths of its names, one for each of its runs. */
  readonly paths: readonly string[];
  /** Other runs have their inputs in the part: it keeps its own name until its owner removes it. */
  readonly isShared: boolean;
}

/** Syncs a segment and gives it its names, durably. Returns a result for each name; does not reject. */
export async function publishSegment({ part, paths, isShared }: SegmentPart): Promise<readonly Settled<void>[]> {
  const [synced] = await Promise.allSettled([syncFile(part)]);
  if (synced.status === "rejected") return paths.map(() => synced);
  return await settleEach(paths, async (path) => {
    giveName(part, path, isShared);
    // Names in one folder share a sync.
    await syncDirectory(dirname(path));
  });
}

function giveName(part: string, path: string, isShared: boolean): void {
  if (isShared) link(part, path);
  else renameSync(part, path);
  faultPoint("segment.named");
}

function link(part: string, path: string): void {
  try {
    linkSync(part, path);
  } catch (thrown) {
    if (systemCode(thrown) !== "EEXIST") throw thrown;
    unlinkSync(path);
    linkSync(part, path);
  }
}

/** Removes a part whose writer could not discard it, with its index of rows. */
export function discardPart(part: string): void {
  rmSync(part, { force: true });
  rmSync(`${part}${ROWS_PART}`, { force: true });
}
