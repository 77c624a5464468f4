/** Files that no trigger claims: the ledger records them, and the rule of their drop finishes them. */
import { posix } from "node:path";
import { wordsOf } from "#core/errors.ts";
import { REGISTER } from "#core/register.ts";
import { finishFile, setFileAside } from "../drops/drop.ts";
import type { Arrival, FinishPlan } from "../model.ts";
import type { ClaimParts } from "./claim-parts.ts";
import { asideEvent, beginWatch } from "./finish-watch.ts";
import type { DropEntry } from "./steps/steps.ts";

/** Milliseconds for the finish of one file. */
const FINISH_MS = 60_000;

/** Names of files in one line of the log. */
const NAMED_MAX = 20;
/** Files whose line was written in this process, so that one that changes now and then has one line. */
const LOGGED_MAX = 100_000;

/** `isExpected`: as in the `Arrival`. Returns whether a person has to see to the file, which was not so before. */
export async function leaveUnmatched(
  arrival: Arrival,
  why: string,
  isExpected: boolean,
  parts: ClaimParts,
): Promise<boolean> {
  const { state, reason, isExpected: wasExpected = false } = arrival;
  if (state !== "unmatched" || reason !== why || wasExpected !== isExpected)
    await parts.ledger.advanceArrival(arrival.id, "unmatched", why, isExpected);
  return !isExpected && (state !== "unmatched" || wasExpected);
}

/** Why no person has to see to a file that no trigger claims, in words; null when one has to. */
export function expectedWords({ drop, path }: Arrival, { dropEntry }: Pick<ClaimParts, "dropEntry">): string | null {
  const patterns = dropEntry(drop)?.expectUnmatched ?? [];
  // A hub stores what accounts send, and shows them what becomes of it.
  if (patterns === "all") return "";
  const composed = path.normalize("NFC");
  const names = path.includes("!/") ? [composed, composed.slice(composed.lastIndexOf("!/") + 2)] : [composed];
  const found = patterns.find((pattern) => names.some((name) => posix.matchesGlob(name, pattern.normalize("NFC"))));
  return found === undefined ? null : `it is expected here (\`expectUnmatched\` of the drop: ${found})`;
}

/** One line for the files of one call, each file once. */
export function logUnmatched(arrivals: readonly Arrival[], { log, loggedUnmatched: logged }: ClaimParts): void {
  const others = arrivals.filter(({ id }) => !logged.has(id));
  if (logged.size + others.length > LOGGED_MAX) logged.clear();
  for (const { id } of others) logged.add(id);
  for (const [drop, files] of Map.groupBy(others, (arrival) => arrival.drop)) {
    const names = files.slice(0, NAMED_MAX).map(({ path }) => path);
    const more = files.length > names.length ? `, and ${files.length - names.length} more` : "";
    const what = files.length === 1 ? "this file" : `these ${files.length} files`;
    const facts = {
      drop,
      files: names,
      count: files.length,
      reason: files[0]?.reason,
      hint: REGISTER["HG-TRIG-001"].hint,
    };
    log.warn({ code: "HG-TRIG-001", ...facts }, `no trigger claims ${what} at ${drop}: ${names.join(", ")}${more}`);
  }
}

/**
 * Applies the drop's rule for unmatched files. A failure is tried again when the triggers are asked again.
 */
export async function finishUnmatched(arrival: Arrival, parts: ClaimParts): Promise<void> {
  const entry = parts.dropEntry(arrival.drop);
  if (entry === undefined || arrival.parentId !== null || entry.finish.unmatched.action === "leave") return;
  const subject = { drop: arrival.drop, path: arrival.path, runId: null };
  const plan = parts.planFinish(entry.finish.unmatched, arrival, `unmatched-${arrival.id}`);
  // One after another, so that the drop has time for other calls.
  const turn = parts.finishing.enter();
  try {
    await turn.mine;
    await parts.ledger.fleet.assertDrop(arrival.drop);
    const signal = AbortSignal.timeout(FINISH_MS);
    if (entry.guardMs > 0) {
      await setAsideUnmatched(arrival, plan, entry, parts, signal);
      parts.finishFaults.note(subject, null);
      return;
    }
    const result = await finishFile(entry.drop, arrival, plan, signal);
    parts.finishFaults.note(subject, null);
    const what = result === "done" ? (plan.action === "archive" ? "archived" : "deleted") : result;
    const detail = plan.action === "archive" && result === "done" ? `${arrival.path} → ${plan.to}` : arrival.path;
    await addSourceEvent(arrival, `source.${what}`, detail, parts);
  } catch (thrown) {
    parts.finishFaults.note(subject, thrown);
    parts.log.warn(
      { drop: arrival.drop, file: arrival.path, reason: wordsOf(thrown) },
      "an unmatched file could not be finished",
    );
  } finally {
    turn.pass();
  }
}

async function setAsideUnmatched(
  arrival: Arrival,
  plan: FinishPlan,
  { drop, guardMs }: DropEntry,
  parts: ClaimParts,
  signal: AbortSignal,
): Promise<void> {
  const before = await parts.ledger.finishedFiles.of(arrival.id);
  // The time of the guard is not extended when the triggers are asked again.
  if (before !== null && before.size === arrival.size && before.mtime === arrival.mtime) return;
  const aside = await setFileAside(drop, { entry: arrival, plan }, signal);
  if (aside.result !== "done" && aside.result !== "waits")
    return await addSourceEvent(arrival, `source.${aside.result}`, arrival.path, parts);
  const watched = beginWatch(aside, guardMs, parts.clock);
  const event =
    aside.result === "done"
      ? asideEvent(arrival.path, aside, watched.endsAt)
      : { what: "source.waits", detail: `${arrival.path} stays for now: ${aside.why}` };
  const { drop: name, path, size, mtime } = arrival;
  const file = { ...watched, drop: name, path, size, mtime, arrivalId: arrival.id };
  await parts.ledger.finishedFiles.watch(file, event);
}

function addSourceEvent({ id }: Arrival, what: string, detail: string, { ledger }: ClaimParts): Promise<void> {
  return ledger.addEvent({ arrivalId: id, runId: null, operationId: null, what, detail });
}
