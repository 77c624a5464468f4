/**
 * `fetched → opened`: the entries of a container become arrivals. While it is opened they are claimed, and it is
 * finished after them.
 */

import { basename } from "node:path/posix";
import { compareNames } from "#core/natural-order.ts";
import { onlyOne } from "#core/settled.ts";
import type { EntriesState } from "../../ledger/ledger.ts";
import type { Run } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import { listContents } from "../unpacking/container.ts";
import { limitsOf } from "../unpacking/copies.ts";
import { finishSources } from "./finish-step.ts";
import { NEXT, REST, type RunSteps, type StepResult } from "./steps.ts";

/** Longest time until a container is checked again, should no entry report that it has moved on. */
const LOOK_AGAIN_MS = 2_000;
/** A delivered entry is awaited for its confirmation, which is not reported to its container. */
const CONFIRMING_MS = 500;
const CLAIMED_AT_ONCE = 64;
const NAMED_MAX = 3;

export async function openContainer(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  if (!(await isContainerHere(run, steps))) {
    await steps.ledger.advanceRun(run.id, "fetched", "claimed", {
      detail: "the spool lost the container; it is fetched again",
    });
    return NEXT;
  }
  // Entries are arrivals in the order in which their containers came.
  const before = await steps.ledger.blockedBy(run);
  if (before !== null) {
    const reason = `waits for the earlier container ${before.path} (${before.state})`;
    return { move: "wait", ms: LOOK_AGAIN_MS, reason, blockedBy: before.id };
  }
  steps.quota.mapped(run.id);
  const path = steps.spool.inputPath(run.id);
  const { entries, ignored } = await listContents(path, basename(run.path), limitsOf(run), signal);
  const besides = ignored === 0 ? "" : `, ${ignored} ignored`;
  if (entries.length === 0) {
    const message = `the container holds no files${besides}`;
    await steps.ledger.advanceRun(run.id, "fetched", "empty", {
      reason: { code: "HG-RUN-003", message },
      detail: message,
    });
    return REST;
  }
  const inOrder =
    steps.dropEntry(run.drop)?.order === "name" ? entries.toSorted((a, b) => compareNames(a.path, b.path)) : entries;
  await steps.ledger.recordOpened(run.id, inOrder, `${entries.length} entries${besides}`);
  return NEXT;
}

/** A copy that is not what was fetched is removed. */
async function isContainerHere({ id, sha256 }: Run, { spool }: RunSteps): Promise<boolean> {
  if (await spool.hasWholeInput(id, sha256)) return true;
  return await spool.restoreInput(id, id, sha256);
}

/** Also when one of its entries has changed. */
export async function tendContainer(run: Run, steps: RunSteps, signal: AbortSignal): Promise<StepResult> {
  const entries = await steps.ledger.entries(run.arrivalId);
  if (entries.unclaimed.length > 0) {
    for (let at = 0; at < entries.unclaimed.length && !signal.aborted; at += CLAIMED_AT_ONCE)
      await Promise.all(entries.unclaimed.slice(at, at + CLAIMED_AT_ONCE).map((entry) => steps.claim(entry)));
    return NEXT;
  }
  if (entries.inProgress !== null) {
    const { id, path, state } = entries.inProgress;
    const reason = `waits for its entry ${path} (${state})`;
    return RUN_STATES[state].isOpen
      ? { move: "wait", ms: LOOK_AGAIN_MS, reason, blockedBy: id }
      : { move: "wait", ms: CONFIRMING_MS, reason };
  }
  if (entries.staying.length > 0) return stay(run, entries, steps);
  if (run.finishedAt === null) {
    const result = await onlyOne(finishSources([run], steps, signal));
    if (result.move === "wait") return result;
  }
  await steps.ledger.noteRun(run.id, { settled: true, reason: null });
  return REST;
}

/** It rests at its drop, and says why. */
async function stay(run: Run, entries: EntriesState, steps: RunSteps): Promise<StepResult> {
  await onlyOne(steps.spool.retire([run.id]));
  const reason = { code: "HG-PACK-008", message: stayingWords(entries) };
  return (await steps.ledger.restContainer(run.id, entries, reason)) ? REST : NEXT;
}

/** `1 of 3 entries is not delivered: b.csv is quarantined` */
function stayingWords({ done, staying }: EntriesState): string {
  const named = staying
    .slice(0, NAMED_MAX)
    .map(({ path, state }) => `${path.slice(path.lastIndexOf("!/") + 2)} is ${STANDING[state] ?? state}`);
  const more = staying.length > NAMED_MAX ? `, and ${staying.length - NAMED_MAX} more` : "";
  const counts = `${staying.length} of ${staying.length + done} entries ${staying.length === 1 ? "is" : "are"}`;
  return `the container stays: ${counts} not delivered (${named.join(", ")}${more})`;
}

const STANDING: Readonly<Partial<Record<EntriesState["staying"][number]["state"], string>>> = {
  accepted: "accepted and not confirmed",
  unconfirmed: "accepted and not confirmed",
  opened: "not delivered as a whole",
};
