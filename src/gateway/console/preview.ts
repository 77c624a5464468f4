/** Shows the consequence of an action before it is performed; nothing is changed. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RejectedError } from "#core/errors.ts";
import { counted } from "#core/grouped-number.ts";
import type { Run } from "../model.ts";
import type { ActionOptions, actionEndpoints, PreviewDetail, Subject } from "../operations/api/actions.ts";
import type { Action } from "../operations/api/attention.ts";
import type { BodyOf, Shown } from "../operations/api/endpoint.ts";
import { creationWords } from "../provisioning/provisioner.ts";
import type { Creation } from "../provisioning/wanted.ts";
import { cancellable } from "../runs/commands/cancel.ts";
import { mustFindRun } from "../runs/commands/command.ts";
import { assertFirst, assertRechecked, mustFindHeld } from "../runs/commands/release.ts";
import { assertReplayable } from "../runs/commands/replay.ts";
import { overtakenWords } from "../runs/steps/later-deliveries.ts";
import type { ActionParts } from "./actions.ts";
import { MAPPING_LIMIT_MS } from "./costly-requests.ts";
import { assertHeld, RunProvisioner } from "./provision-runs.ts";
import type { ReplayPlan } from "./replay-comparison.ts";
import { isUndecided, ReplayPlanner } from "./replay-plan.ts";
import { EFFECTS, fileOf, named, runOf } from "./subjects.ts";

const DIFFERENCES_MAX = 200;
const CREATIONS_MAX = 200;
/** Files of one request that are mapped again. */
const PLANS_MAX = 50;
const UNPLANNED = "It can be replayed without a comparison";

export interface Previewed {
  readonly words: string;
  readonly detail: PreviewDetail | null;
}

/** One request for previews, with what its subjects share. */
export class Previews {
  readonly #parts: ActionParts;
  readonly #options: Shown<ActionOptions>;
  readonly #signal: AbortSignal;
  readonly #isOfSeveral: boolean;
  readonly #provisioner: RunProvisioner;
  /** Structure that the subjects before would create. */
  readonly #planned = new Set<string>();
  #planner: Promise<ReplayPlanner> | null = null;
  #plans = 0;

  constructor(
    parts: ActionParts,
    { options, subjects }: Pick<BodyOf<typeof actionEndpoints.preview>, "options" | "subjects">,
    signal: AbortSignal,
  ) {
    this.#isOfSeveral = subjects.length > 1;
    this.#parts = parts;
    this.#options = options;
    this.#signal = signal;
    this.#provisioner = new RunProvisioner(parts);
  }

  /** Throws the error with which the action would be refused. */
  of(action: Action, subject: Subject): Promise<Previewed> {
    return PREVIEWS[action](this, subject);
  }

  async close(): Promise<void> {
    await (await this.#planner)?.close();
    await this.#provisioner.close();
  }

  async replay(subject: Subject): Promise<Previewed> {
    const { ledger, spool } = this.#parts;
    const run = await mustFindRun(runOf(subject), ledger);
    await assertReplayable(run, { ledger, spool });
    this.#plans += 1;
    if (this.#plans > PLANS_MAX)
      return { words: `not compared: at most ${PLANS_MAX} files are compared at a time`, detail: null };
    const { mapping } = this.#parts;
    const plan = await mapping.run(
      "",
      async () => {
        this.#planner ??= ReplayPlanner.open({
          ...this.#parts,
          timeLimitMs: MAPPING_LIMIT_MS,
          isOfSeveral: this.#isOfSeveral,
          unplanned: UNPLANNED,
        });
        return (await this.#planner).plan(run, this.#options, this.#signal);
      },
      this.#signal,
    );
    return { words: planWords(plan), detail: detailOf(plan) };
  }

  /** Throws the reason for which the replay would be quarantined, as far as it can be known before. */
  async assertMaps(subject: Subject): Promise<void> {
    try {
      await this.replay(subject);
    } catch (thrown) {
      const isOpen = thrown instanceof RejectedError && (thrown.code === "HG-RUN-009" || isUndecided(thrown));
      if (!isOpen) throw thrown;
    }
  }

  async provision(subject: Subject): Promise<Previewed> {
    const run = await mustFindRun(runOf(subject), this.#parts.ledger);
    assertHeld(run);
    const { created: all, impossible, error } = await this.#provisioner.provision(run, true, this.#signal);
    if (error !== null) throw error;
    const keyOf = (creation: Creation) => `${run.binding.service} ${creationKey(creation)}`;
    const created = all.filter((creation) => !this.#planned.has(keyOf(creation)));
    for (const creation of created) this.#planned.add(keyOf(creation));
    const shared = all.length - created.length;
    const parts = [
      ...(all.length === 0 ? ["nothing is missing"] : [`${created.length} would be created at the service`]),
      ...(shared === 0 ? [] : [`${shared} that it needs would be created for files before it`]),
      ...(impossible.length === 0 ? [] : [`${impossible.length} cannot be created`]),
    ];
    return {
      words: parts.join("; "),
      detail: {
        action: "provision",
        creates: created.slice(0, CREATIONS_MAX).map(creationWords),
        count: created.length,
        impossible: [...impossible].slice(0, CREATIONS_MAX),
      },
    };
  }

  async release(subject: Subject): Promise<Previewed> {
    const { ledger, spool } = this.#parts;
    const run = await mustFindHeld(runOf(subject), ledger);
    await assertFirst(run, ledger);
    const discards = run.reason?.discards ?? 0;
    const overtaken = await this.#overtaken(run, spool);
    const parts = [
      `${run.points.mapped} readings would be sent as they are`,
      ...(discards === 0 ? [] : [`the service would discard ${discards} of them`]),
      ...(overtaken === null ? [] : [overtaken]),
    ];
    return {
      words: parts.join("; "),
      detail: { action: "release", readings: run.points.mapped, discards, overtaken },
    };
  }

  /** With files of its own, since the run itself may be checked at the same time. */
  async #overtaken(run: Run, spool: ActionParts["spool"]): Promise<string | null> {
    const folder = await mkdtemp(join(tmpdir(), "headgate-"));
    try {
      const segmentPath = (id: string) => join(folder, id);
      const { openSegment } = spool;
      const found = await overtakenWords(run, { ledger: this.#parts.ledger, spool: { openSegment, segmentPath } });
      if (found.status === "wait") return found.step.reason;
      return found.status === "overtaken" ? found.words : null;
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  async recheck(subject: Subject): Promise<Previewed> {
    const run = assertRechecked(await mustFindRun(runOf(subject), this.#parts.ledger));
    const words =
      run.state === "unconfirmed"
        ? "the service is asked now what it stored"
        : "it is checked now whether what it waits for is there";
    return { words, detail: null };
  }

  async cancel(subject: Subject): Promise<Previewed> {
    const { run, unknown } = await cancellable(runOf(subject), this.#parts.ledger);
    const { accepted, mapped } = run.points;
    const parts = [
      `${mapped - accepted} readings are not sent`,
      ...(accepted === 0 ? [] : [`${accepted} were accepted before and stay`]),
      ...(unknown.length === 0 ? [] : [`${unknown.length} batches were sent and not answered`]),
    ];
    return {
      words: mapped === 0 ? "nothing of the file is sent" : parts.join("; "),
      detail: { action: "cancel", acceptedPoints: accepted, unanswered: unknown.length },
    };
  }

  async forget(subject: Subject): Promise<Previewed> {
    const { ledger } = this.#parts;
    const { drop, path } = await fileOf(subject, ledger);
    const { arrivals, runs, acceptedPoints, unanswered } = await ledger.forgettable(drop, path);
    if (arrivals === 0)
      throw new RejectedError("HG-CLI-002", {
        operation: "forget",
        subject: path,
        message: path.includes("!/")
          ? "an entry is forgotten only with its container"
          : `the ledger knows no file ${path} at the drop ${drop}`,
      });
    const parts = [
      `${arrivals} versions and ${runs.length} runs of ${path} at ${drop} are forgotten`,
      ...(acceptedPoints === 0
        ? []
        : [`${acceptedPoints} readings were accepted, and are sent again if the file is still at its drop`]),
      ...(unanswered === 0 ? [] : [`${unanswered} batches were sent and not answered`]),
    ];
    return {
      words: parts.join("; "),
      detail: { action: "forget", versions: arrivals, runs: runs.length, acceptedPoints, unanswered },
    };
  }

  async pause(subject: Subject): Promise<Previewed> {
    const { kind, name } = named(subject, this.#parts.config);
    return { words: `the ${kind} ${name} is paused: ${EFFECTS[kind]}`, detail: null };
  }

  async resume(subject: Subject): Promise<Previewed> {
    const { kind, name } = named(subject, this.#parts.config);
    const isPaused = (await this.#parts.ledger.pauses()).some((one) => one.kind === kind && one.name === name);
    return { words: `the ${kind} ${name} ${isPaused ? "is resumed" : "is not paused"}`, detail: null };
  }
}

const PREVIEWS: Readonly<Record<Action, (previews: Previews, subject: Subject) => Promise<Previewed>>> = {
  replay: (previews, subject) => previews.replay(subject),
  provision: (previews, subject) => previews.provision(subject),
  release: (previews, subject) => previews.release(subject),
  recheck: (previews, subject) => previews.recheck(subject),
  cancel: (previews, subject) => previews.cancel(subject),
  forget: (previews, subject) => previews.forget(subject),
  pause: (previews, subject) => previews.pause(subject),
  resume: (previews, subject) => previews.resume(subject),
};

/** Of dry runs, whose ids are not known: equal for what is created once. */
function creationKey({ entity, name, target, body }: Creation): string {
  if (entity === "site") return `site ${name}`;
  if (entity === "variable") return `variable ${target}`;
  const { serialNumber, ean, meterNumber } = body;
  return `source ${JSON.stringify([serialNumber, ean, meterNumber])}`;
}

function planWords({ readings, refusedRows, later, overwrites, replaces }: ReplayPlan): string {
  const { sent, mapped, added, changed, unchanged, acceptedBefore, dropped } = readings;
  const overlap = later.reduce((sum, one) => sum + one.readings, 0);
  const files = replaces.files.join(", ");
  const left = (count: number) => counted(count, "is", "are");
  const parts = [
    `${sent} of ${counted(mapped, "reading is", "readings are")} sent: ${added} new, ${changed} with another value, ` +
      `${unchanged} as before`,
    ...(refusedRows === 0 ? [] : [`${counted(refusedRows, "row is", "rows are")} refused`]),
    ...(acceptedBefore === 0 ? [] : [`${left(acceptedBefore)} left out, accepted before`]),
    ...(dropped === 0 ? [] : [`${left(dropped)} not in it, accepted before, and left at the service`]),
    ...(overlap === 0
      ? []
      : overwrites
        ? [`${counted(overlap, "overwrites", "overwrite")} what later files delivered`]
        : [`${left(overlap)} left out for later files`]),
    ...(replaces.readings === 0
      ? []
      : [`${counted(replaces.readings, "replaces", "replace")} another value of ${files}, sent before`]),
  ];
  return parts.join("; ");
}

function detailOf({ trigger, mapper, readings, refusedRows, differences, later, notKept }: ReplayPlan): PreviewDetail {
  return {
    action: "replay",
    trigger,
    mapper: `${mapper.name} ${mapper.version}`,
    readings,
    refusedRows,
    differences: differences.slice(0, DIFFERENCES_MAX),
    later: later.map(({ run, file, readings: count, from, to }) => ({ run, file, readings: count, from, to })),
    notKept: [...notKept],
  };
}
