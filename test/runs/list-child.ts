/** Does the list of its arguments, and is killed at the point that they name. */

import { armFault } from "#core/faults.ts";
import { silentLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import type { FileEntry, FinishPlan } from "#gateway/model.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { publishSegment, type SegmentPart } from "#mapping/segment/publish.ts";

export interface ListOrder {
  readonly root: string;
  readonly spool: string;
  readonly fetch?: { readonly entries: readonly FileEntry[]; readonly destination: string };
  readonly publish?: SegmentPart;
  readonly finish?: readonly { entry: FileEntry; plan: FinishPlan }[];
  readonly retire?: readonly string[];
}

const [point = "", order = ""] = process.argv.slice(2);
const { root, spool: path, fetch, publish, finish, retire } = JSON.parse(order) as ListOrder;
armFault(point);
const never = new AbortController().signal;
const drop = await createDrop(dropOptions.parse({ kind: "local", name: "field", path: root, watch: false }), {
  log: silentLog,
});
const keepInputs = { age: 1e12, size: 1e12 };
const spool = await openSpool({ path, budget: 1e9, headroom: 0, keepInputs });
if (fetch !== undefined) await drop.fetch(fetch.entries, fetch.destination, never);
if (publish !== undefined) await publishSegment(publish);
if (finish !== undefined) await drop.finish(finish, never);
if (retire !== undefined) await spool.retire(retire);
