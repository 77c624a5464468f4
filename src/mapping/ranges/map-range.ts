/** Maps a later range of a file, for the thread that maps the rest of it. */

import { OddDates } from "../plausible.ts";
import { ReadingIndex } from "../reading-index.ts";
import { Findings, Rejections } from "../rejections.ts";
import { MapWork, type RunRequest, runMapper } from "../run-mapper.ts";
import { parseSettings } from "../settings.ts";
import { SpillFile } from "../spill.ts";
import { LaterRange, type MappedRange, type RangeAsk } from "./ranges.ts";

export interface MapRangeRequest extends Omit<RunRequest, "content" | "zones" | "log"> {
  readonly range: RangeAsk;
}

/** Null when the other thread has to map the range, since only it can say what the rows mean, or what is wrong. */
export async function mapRange(request: MapRangeRequest): Promise<MappedRange | null> {
  const settings = parseSettings(request.mapper, request.settings);
  if ("fault" in settings || request.signal.aborted) return null;
  let index: ReadingIndex | undefined;
  const work = new MapWork();
  try {
    const rejections = new Rejections();
    index = new ReadingIndex(
      "",
      request.rowsInMemoryMax,
      new SpillFile(request.range.spillPath, "borrow"),
      new OddDates(settings.dates),
    );
    const range = new LaterRange({ index, rejections }, request.range);
    const log = { info: range.refuse, warn: range.refuse };
    const reason = await runMapper({ ...request, log }, settings.value, {
      ...{ index, rejections, range, work, findings: new Findings(range.refuse) },
      onCut: range.refuse,
    });
    return reason === null && index.fault === undefined ? range.result() : null;
  } catch {
    // The other thread meets the fault again, and reports it.
    return null;
  } finally {
    // The other thread maps with the same mapper, and reports it.
    work.seal(() => undefined);
    index?.close();
  }
}
