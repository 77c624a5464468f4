/**
 * A mapper that gives readings after its file was written: they are lost, and the next files of that version would lose
 * theirs too. So the run says it, and the triggers that use the mapper claim nothing until a person resumes them.
 */

import type { Clock } from "#core/clock.ts";
import { TransientError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { reasonOf } from "#mapping/rejections.ts";
import type { KeptVersions } from "#mapping/workers/mapper-versions.ts";
import { type LateReadings, lateWords } from "#mapping/workers/pool.ts";
import type { GatewayConfig } from "./config.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Run } from "./model.ts";
import { PAUSED_BY_GATEWAY, type Pauses } from "./runs/pauses.ts";
import { mapperText } from "./runs/steps/bound-mapper.ts";

export interface LateReadingsParts {
  readonly config: Pick<GatewayConfig, "triggers">;
  readonly ledger: Pick<Ledger, "run" | "noteRun">;
  readonly pauses: Pick<Pauses, "reason" | "set">;
  readonly versions: Pick<KeptVersions, "here">;
  readonly clock: Clock;
  readonly log: Logger;
}

const ATTEMPTS = 10;
const RETRY_MS = 1_000;
const never = new AbortController().signal;

/** `partsOf`: the pool that reports is made together with the versions. */
export function lateReporter(partsOf: () => LateReadingsParts): (late: LateReadings) => void {
  return (late) => void onLateReadings(late, partsOf());
}

async function onLateReadings(late: LateReadings, parts: LateReadingsParts): Promise<void> {
  const { log, clock } = parts;
  const { runId, file, words } = late;
  const code = "HG-MAP-041";
  log.warn({ run: runId, file, code }, lateWords(words));
  for (let attempt = 1; ; attempt += 1) {
    try {
      const run = await parts.ledger.run(runId);
      // Null for a trial, such as of the playground.
      if (run !== null) await recordLate(run, words, parts);
      return;
    } catch (thrown) {
      if (!(thrown instanceof TransientError) || attempt === ATTEMPTS) {
        log.error({ run: runId, file, code }, `readings that came late cannot be recorded: ${wordsOf(thrown)}`);
        return;
      }
      await clock.sleep(RETRY_MS, never);
    }
  }
}

async function recordLate(run: Run, words: string, parts: LateReadingsParts): Promise<void> {
  const { ledger, pauses, config, versions } = parts;
  const { mapper, trigger } = run.binding;
  const detail = `${mapperText(mapper)} gave readings too late: ${lateWords(words)}`;
  const reason = reasonOf("HG-MAP-041", detail);
  await ledger.noteRun(run.id, { reason, event: "run.warned", detail });
  const inForce = await versions.here(mapper.name).catch(() => null);
  // Another version has to show itself what it does.
  if (inForce !== null && inForce.digest !== mapper.digest) return;
  const using = config.triggers.filter((one) => one.mapper === mapper.name).map(({ name }) => name);
  for (const name of new Set([trigger, ...using])) {
    if (pauses.reason("trigger", name) !== null) continue;
    const why = `${detail} (run ${run.id}, ${run.path}); correct the mapper and replay that run first`;
    await pauses.set({ kind: "trigger", name, by: PAUSED_BY_GATEWAY, why });
  }
}
