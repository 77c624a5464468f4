/**
 * `headgate check` at a drop: the findings of every kind of drop. The findings of one kind are in a file
 * beside this one.
 */

import { spanWords } from "#core/clock.ts";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import { hasEscapes, unusableName } from "#core/file-names.ts";
import type { FileEntry } from "../model.ts";
import type { ProbeFinding } from "./drop.ts";
import type { DropOptions } from "./options.ts";
import { clockFinding, failedFinding } from "./probe-findings.ts";
import { probeRights, type TrialFacts } from "./probe-trial.ts";

export interface ProbeFacts extends TrialFacts {
  readonly options: Pick<DropOptions, "name" | "finish" | "initial" | "every">;
  list(signal: AbortSignal): AsyncIterable<readonly FileEntry[]>;
  /** Links in the last listing. */
  linksSeen(): number;
  /** Where and how files are listed, such as `in /srv by MLSD`; called after the listing. */
  listedWhere(): string;
  /** Why the times of files do not determine the clock, when a trial cannot. */
  readonly whyNoClock: string;
}

/** The findings before and after the listing. */
export interface ProbeSteps {
  /** Connects. When it fails, the check ends. */
  greet(signal: AbortSignal): Promise<readonly ProbeFinding[]>;
  /** The findings about the connection after the listing. */
  transferred(signal: AbortSignal): Promise<readonly ProbeFinding[]>;
}

export async function probeDrop(
  facts: ProbeFacts,
  steps: ProbeSteps,
  signal: AbortSignal,
  onEntry: (entry: FileEntry) => void,
): Promise<readonly ProbeFinding[]> {
  const findings: ProbeFinding[] = [];
  try {
    findings.push(...(await steps.greet(signal)));
  } catch (thrown) {
    return [failedFinding("server", thrown)];
  }
  const listing = await probeListing(facts, signal, onEntry);
  findings.push(...listing);
  // Without a listing the folder may not even exist.
  if (listing.some(({ level }) => level === "failed")) return findings;
  findings.push(...(await unlessFailed("server", () => steps.transferred(signal))));
  findings.push(...(await probeTrial(facts, signal)));
  return findings;
}

async function probeListing(
  facts: ProbeFacts,
  signal: AbortSignal,
  onEntry: (entry: FileEntry) => void,
): Promise<readonly ProbeFinding[]> {
  const beganMs = performance.now();
  let files = 0;
  const unusable: string[] = [];
  try {
    for await (const entries of facts.list(signal))
      for (const entry of entries) {
        files += 1;
        if (hasEscapes(entry.path)) unusable.push(entry.path);
        onEntry(entry);
      }
  } catch (thrown) {
    return [failedFinding("listing", thrown)];
  }
  const tookMs = performance.now() - beganMs;
  const slow = tookMs > facts.options.every;
  const took = tookMs < 1000 ? `${Math.ceil(tookMs)} ms` : spanWords(tookMs);
  const found: ProbeFinding = {
    level: slow ? "warning" : "ok",
    about: "listing",
    what: `${files} files listed ${facts.listedWhere()} within ${took}`,
    ...(slow ? { hint: `That is longer than \`every\` (${spanWords(facts.options.every)}): poll less often.` } : {}),
  };
  const links = facts.linksSeen();
  return [found, ...(links === 0 ? [] : [linksFinding(links)]), ...namesFindings(unusable)];
}

function namesFindings(unusable: readonly string[]): readonly ProbeFinding[] {
  const [first] = unusable;
  if (first === undefined) return [];
  const { message, hint } = unusableName(first);
  const more = unusable.length === 1 ? "" : `, and so have ${unusable.length - 1} more files names that cannot be used`;
  return [{ level: "warning", about: "names", what: `${first} is not picked up: ${message}${more}`, hint }];
}

function linksFinding(links: number): ProbeFinding {
  return {
    level: "warning",
    about: "links",
    what: `${links} symbolic links are not followed`,
    hint: "Put the files themselves into the folder, or configure a drop for the folder that the links lead to.",
  };
}

async function probeTrial(facts: ProbeFacts, signal: AbortSignal): Promise<readonly ProbeFinding[]> {
  return unlessFailed("rights", async () => {
    const { findings, clock } = await probeRights(facts, signal);
    const { initial } = facts.options;
    const bySince = typeof initial !== "string";
    const finding: ProbeFinding =
      clock === null
        ? { level: "ok", about: "clock", what: `not known: ${whyNoClock(facts, findings)}` }
        : clockFinding(clock, bySince);
    return [finding, ...findings];
  });
}

function whyNoClock(facts: ProbeFacts, findings: readonly ProbeFinding[]): string {
  const refused = findings.some(({ about, what }) => about === "rights" && what.includes(" is refused ("));
  return refused ? "no file could be written to compare its time with this clock" : facts.whyNoClock;
}

async function unlessFailed(
  about: string,
  work: () => Promise<readonly ProbeFinding[]>,
): Promise<readonly ProbeFinding[]> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof HeadgateError) return [failedFinding(about, thrown)];
    // The text of a server comes unchanged from a trial.
    return [{ level: "failed", about, what: wordsOf(thrown) }];
  }
}
