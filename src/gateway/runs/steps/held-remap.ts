/**
 * A held run whose mapper, settings or tables were changed since it was mapped: the file continues as a new run, which
 * is bound to what is in force and has the place of the held one in its lane (invariants 7 and 10). With `held.remap:
 * ask` it stays held, and says so, until a person replays it (with what is in force) or releases it (as it is).
 */
import { isDeepStrictEqual } from "node:util";
import { REGISTER } from "#core/register.ts";
import type { Binding, MapperIdentity, Run } from "../../model.ts";
import type { ReplayOverrides } from "../replay-mapper.ts";
import { mapperText } from "./bound-mapper.ts";
import { hasInput } from "./exclusions.ts";
import { NEXT, type RunSteps, type StepResult } from "./steps.ts";

type Bound = Awaited<ReturnType<RunSteps["bindingNow"]>>;

/** The binding in force, and in words how it differs from the one that the run was mapped with. */
export interface ChangedBinding {
  readonly now: Bound;
  readonly words: string;
}

/** Null when nothing differs, and for what cannot be mapped again. */
export async function changedBinding(run: Run, steps: RunSteps): Promise<ChangedBinding | null> {
  const { binding } = run;
  if (binding.structure === true || binding.unpack !== undefined) return null;
  const now = await steps.bindingNow(run, chosenBy(run));
  // A mapper that is missing or does not load changes nothing: what was mapped stays.
  const mapper = await steps.currentMapper(now.binding.mapper.name);
  if (mapper === null) return null;
  const words = differences(binding, now.binding, mapper);
  if (words.length === 0) return null;
  return { now: { ...now, binding: { ...now.binding, mapper } }, words: words.join("; ") };
}

/** The choice of a person who ordered a replay, which no trigger overrides; its mapper may have another version. */
function chosenBy({ replay, binding }: Run): ReplayOverrides {
  if (replay === null || replay.continues === "claim") return {};
  return { mapper: binding.mapper.name, settings: binding.settings, rows: binding.rows };
}

function differences(was: Binding, now: Binding, mapper: MapperIdentity): readonly string[] {
  const { mapper: own } = was;
  const words: string[] = [];
  if (own.name !== mapper.name || own.digest !== mapper.digest)
    words.push(`it was mapped by ${mapperText(own)}, and in force is ${mapperText(mapper)}`);
  const keys = changedKeys(was.settings, now.settings);
  if (keys.length > 0) words.push(`other settings are in force (${keys.join(", ")})`);
  const rules = (["rows", "rejectShare", "version"] as const).filter((key) => !isSame(was[key], now[key]));
  for (const rule of rules) words.push(`the trigger has \`${rule}\` ${JSON.stringify(now[rule]) ?? "left out"} now`);
  for (const { name, digest } of was.lookups ?? []) {
    const there = now.lookups?.find((table) => table.name === name);
    // A table that cannot be read now may come back unchanged.
    if (there !== undefined && there.digest !== null && there.digest !== digest)
      words.push(`the table ${name} was changed`);
  }
  return words;
}

function changedKeys(was: Binding["settings"], now: Binding["settings"]): readonly string[] {
  const keys = new Set([...Object.keys(was), ...Object.keys(now)]);
  return [...keys].filter((key) => !isSame(was[key], now[key])).sort();
}

/** A binding of the ledger was JSON. */
function isSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(plain(one), plain(other));
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/**
 * Whether the gateway continues it by itself: not where a part of it was accepted, which other values would not take
 * back, nor where there is nothing left to map.
 */
export async function mayContinue(run: Run, steps: RunSteps): Promise<boolean> {
  return steps.remapHeld === "always" && run.points.accepted === 0 && (await hasInput(run, steps));
}

export async function continueHeld(run: Run, { now, words }: ChangedBinding, steps: RunSteps): Promise<StepResult> {
  const why = run.reason === null ? words : `${words}; it was held: ${run.reason.message}`;
  const { run: next } = await steps.ledger.replaceHeld(
    run.id,
    { code: "HG-RUN-010", message: words },
    {
      ...now,
      replay: {
        ...{ of: run.id, rejectedOnly: false, overwrite: true, by: "Headgate", why },
        continues: run.replay === null ? "claim" : (run.replay.continues ?? "replay"),
      },
    },
  );
  steps.log.info(
    { run: run.id, next: next.id, drop: run.drop, file: run.path },
    `${run.path} is mapped again: ${words}`,
  );
  steps.onRun();
  return NEXT;
}

/** Why a run stays held that nothing else holds. */
export function askedReason({ words }: ChangedBinding) {
  const code = "HG-GUARD-010";
  return { code, message: words, hint: REGISTER[code].hint };
}
