/** Checks whether the ledger, the spool and the drops agree, and repairs what can be repaired. */

import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { HeadgateError, systemCode, wordsOf } from "#core/errors.ts";
import { onlyOne } from "#core/promises.ts";
import { bodiesOf } from "#mapping/segment/payloads.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { FileEntry, Run } from "../model.ts";
import type { Spool } from "../spool/spool.ts";
import { BATCH_STATES, IN_PROGRESS_STATES, RUN_STATES } from "../states.ts";

export interface Finding {
  readonly about: "ledger" | "segment" | "input" | "kept input" | "drop" | "archive";
  readonly subject: string;
  readonly what: string;
  /** The repair, in words; null when there is none. */
  readonly remedy: string | null;
  /** Whether it was repaired. */
  readonly repaired: boolean;
}

export interface CheckParts {
  readonly ledger: Ledger;
  readonly spool: Spool;
  /** Null where the drop of that name cannot be asked. */
  stat(drop: string, path: string): Promise<FileEntry | null> | null;
  /** Whether findings are repaired. Only without a gateway. */
  readonly repair: boolean;
}

export async function* checkAll(parts: CheckParts, signal: AbortSignal): AsyncGenerator<Finding> {
  yield* checkLedger(parts);
  for (const run of await parts.ledger.runsIn(IN_PROGRESS_STATES)) {
    if (signal.aborted) return;
    for await (const finding of checkRun(run, parts)) if (await isStill(run, parts)) yield finding;
  }
  yield* checkStrangers(parts);
  for (const id of await parts.spool.keptInputs()) {
    if (signal.aborted) return;
    yield* checkKept(id, parts);
  }
}

async function* checkLedger({ ledger, repair }: CheckParts): AsyncGenerator<Finding> {
  for (const fault of await ledger.check()) {
    const repaired = repair && fault.repair !== null && (await ledger.repair(fault));
    const remedy = fault.repair === null ? null : REMEDIES[fault.repair];
    yield { about: "ledger", subject: fault.subject, what: fault.words, remedy, repaired };
  }
}

const REMEDIES = {
  recount: "its points are counted again from its batches",
  relink: "its latest run is looked up again",
} as const;

/** A gateway that runs at the same time may have moved the run meanwhile. */
async function isStill(run: Run, { ledger, repair }: CheckParts): Promise<boolean> {
  if (repair) return true;
  const now = await ledger.run(run.id);
  return now !== null && now.state === run.state && now.changedAt === run.changedAt;
}

async function* checkRun(run: Run, parts: CheckParts): AsyncGenerator<Finding> {
  const { spool, repair } = parts;
  const subject = `run ${run.id} of ${run.path}`;
  const input = await isInputWhole(run, spool);
  if (input === false) {
    if (repair) await spool.discard(run.id, "input");
    yield {
      about: "input",
      subject,
      what: "the input is not what was fetched",
      // An input within the segment is removed without the batches, which may be whole, and all that is left
      // of the file.
      remedy: "it is removed, and fetched again when it is needed; batches that were made of it stay",
      repaired: repair,
    };
  }
  const hasInput = input === true || ((input === null || repair) && (await spool.holdsInput(run.id)));
  const hasBatches =
    RUN_STATES[run.state].index === "runs_delivery" && (yield* checkSegment(run, subject, hasInput, parts));
  // Whole batches are delivered also without their input.
  if (!hasInput && !hasBatches) yield* checkSource(run, subject, parts);
}

/** Returns whether the batches that are still to be delivered are whole. */
async function* checkSegment(
  run: Run,
  subject: string,
  hasInput: boolean,
  { ledger, spool, repair }: CheckParts,
): AsyncGenerator<Finding, boolean> {
  const batches = await ledger.batches(run.id);
  const open = batches.filter(({ state }) => BATCH_STATES[state].isUnanswered);
  const segment = await spool.openSegment(run.id);
  if (segment === null) {
    if (open.length === 0) return true;
    const remedy = hasInput ? "the gateway makes it again, with equal bytes, from the input" : null;
    yield { about: "segment", subject, what: "the segment is not in the spool", remedy, repaired: false };
    return false;
  }
  const damaged = new Set(open.map(({ sequence }) => sequence));
  for await (const { slice } of bodiesOf(segment, open)) damaged.delete(slice.sequence);
  if (damaged.size === 0) return true;
  const damagedBatches = `${damaged.size === 1 ? "batch" : "batches"} ${[...damaged].join(", ")}`;
  const what = `the bytes of ${damagedBatches} are not those that the ledger has`;
  // When the input is gone, the whole batches are all that is left of the file.
  const repaired = repair && hasInput && (await savesInput(run, spool));
  if (repaired) await spool.discard(run.id, "segment");
  const remedy = hasInput ? "it is removed, and the gateway makes it again, with equal bytes" : null;
  yield { about: "segment", subject, what, remedy, repaired };
  return false;
}

/** The input may be in the segment that is going to be removed. */
async function savesInput({ id, sha256 }: Run, spool: Spool): Promise<boolean> {
  return (await spool.hasInput(id)) || (await spool.restoreInput(id, id, sha256));
}

/** Checks the drop, for a run whose bytes nothing else has. */
async function* checkSource(run: Run, subject: string, parts: CheckParts): AsyncGenerator<Finding> {
  const arrival = await parts.ledger.arrival(run.arrivalId);
  if (arrival === null || arrival.parentId !== null) return;
  let there: FileEntry | null;
  try {
    const status = parts.stat(run.drop, run.path);
    if (status === null) return;
    there = await status;
  } catch (thrown) {
    if (!(thrown instanceof HeadgateError)) throw thrown;
    const what = `the drop ${run.drop} cannot be asked: ${wordsOf(thrown)}`;
    yield { about: "drop", subject, what, remedy: null, repaired: false };
    return;
  }
  if (there !== null && there.size === run.size && there.mtime === run.mtime) return;
  const why = there === null ? "the file is gone" : "the file there has other content";
  const what = `neither the spool nor the drop ${run.drop} has its bytes: ${why}`;
  const isLost = run.state !== "claimed";
  const message = `${what}; found by \`ledger check\``;
  if (parts.repair && isLost)
    await parts.ledger.advanceRun(run.id, run.state, "quarantined", {
      reason: { code: "HG-RUN-009", message },
      detail: message,
    });
  const remedy = isLost ? "the run goes to quarantine" : "the gateway cancels the run at its next start";
  yield { about: "drop", subject, what, remedy, repaired: parts.repair && isLost };
}

/** Files in the spool of runs that the ledger does not know. */
async function* checkStrangers({ ledger, spool, repair }: CheckParts): AsyncGenerator<Finding> {
  for (const id of await spool.residents()) {
    if ((await ledger.run(id)) !== null) continue;
    if (repair) await onlyOne(spool.retire([id]));
    yield {
      about: "input",
      subject: `run ${id}`,
      what: "the spool has files of it, and the ledger does not know it",
      remedy: "they are moved to the kept files, and pruned with them",
      repaired: repair,
    };
  }
}

async function* checkKept(id: string, { ledger, spool, repair }: CheckParts): AsyncGenerator<Finding> {
  const input = await spool.openInput(id, "kept");
  if (input === null) return;
  const digest = await digestOf(input);
  const run = await ledger.run(id);
  if (digest !== null && (run === null || run.sha256 === null || run.sha256 === digest)) return;
  const what = digest === null ? "the kept copy is torn" : "the kept copy is not what was fetched";
  if (repair) await spool.discard(id, "kept");
  yield {
    about: "kept input",
    subject: `run ${id}${run === null ? "" : ` of ${run.path}`}`,
    what,
    remedy: "it is removed, and nothing else of its run; a replay takes the file from its drop",
    repaired: repair,
  };
}

/** Returns null when the spool has no input of a run in progress. */
async function isInputWhole(run: Run, spool: Spool): Promise<boolean | null> {
  const input = run.sha256 === null ? null : await spool.openInput(run.id, "in progress");
  return input === null ? null : (await digestOf(input)) === run.sha256;
}

/** Returns null when the input cannot be unpacked. */
async function digestOf(input: Readable): Promise<string | null> {
  const hash = createHash("sha256");
  try {
    await pipeline(input, hash);
  } catch (thrown) {
    // A disk that cannot be read says nothing about the copy.
    if (["EIO", "EACCES"].includes(systemCode(thrown) ?? "")) throw thrown;
    return null;
  }
  return hash.digest("hex");
}
