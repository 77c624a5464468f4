/** The actions of persons: previews, and commands with an answer for each subject. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, timeWords } from "#core/clock.ts";
import { HeadgateError, InvariantError, RejectedError } from "#core/errors.ts";
import { counted } from "#core/text.ts";
import { FairQueue } from "#core/turns.ts";
import type { Closer } from "../closers.ts";
import type { GatewayConfig } from "../config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";
import type { ActionOptions, actionEndpoints, PreviewDetail, Subject } from "../operations/api/actions.ts";
import type { Action } from "../operations/api/attention.ts";
import type { BodyOf, HandlersOf, Person, Shown } from "../operations/api/endpoint.ts";
import { createdWords, creationWords } from "../provisioning/provisioner.ts";
import type { Creation } from "../provisioning/wanted.ts";
import { cancellable } from "../runs/commands/cancel.ts";
import { mustFindRun } from "../runs/commands/command.ts";
import { assertFirst, assertRechecked, mustFindHeld } from "../runs/commands/release.ts";
import { assertReplayable } from "../runs/commands/replay.ts";
import type { CommandResults, OperatorCommand } from "../runs/commands.ts";
import type { BindingParts } from "../runs/replay-mapper.ts";
import type { Scheduler } from "../runs/scheduler.ts";
import { overtakenWords } from "../runs/steps/later-deliveries.ts";
import type { Spool } from "../spool/spool.ts";
import { assertHeld, RunProvisioner } from "./provision-runs.ts";
import type { ReplayPlan } from "./replay-comparison.ts";
import { isUndecided, ReplayPlanner } from "./replay-plan.ts";
import { EFFECTS, fileOf, named, runOf } from "./subjects.ts";

export interface ActionParts {
  readonly config: GatewayConfig;
  readonly ledger: Ledger;
  readonly spool: Spool;
  readonly scheduler: Pick<Scheduler, "waitReason">;
  readonly clock: Clock;
  readonly closers: Closer[];
  /** Turns of files that are mapped for people, by the playground too. */
  readonly mapping: FairQueue<string>;
  /** The configuration that replays are bound to, as it is now. */
  binding(): BindingParts;
  /** Throws `RejectedError` when the command cannot be executed. */
  execute<Asked extends OperatorCommand>(command: Asked): Promise<CommandResults[Asked["order"]]>;
}

const DIFFERENCES_MAX = 200;
const CREATIONS_MAX = 200;
/** Files of one request that are mapped again. */
const PLANS_MAX = 50;
const UNPLANNED = "It can be replayed without a comparison";

/** One request for previews, with what its subjects share. */
class Previews {
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
    return PREVIEW_OF[action](this, subject);
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

const PREVIEW_OF: Readonly<Record<Action, (previews: Previews, subject: Subject) => Promise<Previewed>>> = {
  replay: (previews, subject) => previews.replay(subject),
  provision: (previews, subject) => previews.provision(subject),
  release: (previews, subject) => previews.release(subject),
  recheck: (previews, subject) => previews.recheck(subject),
  cancel: (previews, subject) => previews.cancel(subject),
  forget: (previews, subject) => previews.forget(subject),
  pause: (previews, subject) => previews.pause(subject),
  resume: (previews, subject) => previews.resume(subject),
};

/** Files that mappers map at the same time for the playground and for previews of replays, of all people. */
export const MAPPED_AT_ONCE = 2;
/** Milliseconds of one such file; a person waits for the answer. */
export const MAPPING_LIMIT_MS = 30_000;

/** So long a command waits for what the checks of its runs find. */
const CHECKS_MS = 10_000;
const CHECK_POLL_MS = 100;
/** Previews at the same time, of all people. Those of replays take turns with each file. */
const PREVIEWS = 2;

type PreviewRequest = BodyOf<typeof actionEndpoints.preview>;

export function actionHandlers(parts: ActionParts): HandlersOf<typeof actionEndpoints> {
  const slots = new FairQueue<string>(PREVIEWS);
  const replays = new NewestRequests("preview replay");
  parts.closers.push(async () => replays.close());
  return {
    async preview({ body, person, signal }) {
      assertPermitted(body.options, person);
      const items =
        body.action === "replay"
          ? await replays.run(person.name, signal, (stop) => previewsOf(parts, body, stop))
          : await slots.run(person.name, () => previewsOf(parts, body, signal), signal);
      return { items };
    },
    // It is performed to its end, also when the client has gone.
    async command({ body: { command, subjects, options, why }, person }) {
      const commands = new Commands(parts, { options, subjects }, { by: person.name, why });
      const answer = (subject: Subject) => commands.perform(command, subject);
      try {
        return { items: await eachOf<Done>(subjects, answer, { run: null }) };
      } finally {
        await commands.close();
      }
    },
  };
}

async function previewsOf(
  parts: ActionParts,
  request: PreviewRequest,
  signal: AbortSignal,
): Promise<(Answered & Previewed)[]> {
  const { action, subjects } = request;
  const previews = new Previews(parts, request, signal);
  const answer = (subject: Subject) => {
    signal.throwIfAborted();
    return previews.of(action, subject);
  };
  try {
    const items = await eachOf<Previewed>(subjects, answer, { detail: null });
    signal.throwIfAborted();
    return items;
  } finally {
    await previews.close();
  }
}

/** Throws `RejectedError` for settings of a mapper that a viewer would have run. */
function assertPermitted({ trigger, mapper, settings, rows }: Shown<ActionOptions>, { name, role }: Person): void {
  if (role === "operator") return;
  if ([trigger, mapper, settings, rows].every((one) => one === undefined)) return;
  throw new RejectedError("HG-OPS-014", {
    operation: "preview replay",
    subject: name,
    message: `${name} is a ${role}, and another trigger, mapper, settings or rule for rows are for operators`,
  });
}

interface Answered {
  readonly subject: Subject;
  readonly status: "ok" | "refused";
  readonly words: string;
  readonly code: string | null;
  readonly hint: string | null;
}

/** One after the other: the error of one is its answer, and the others continue. */
async function eachOf<Answer extends { readonly words: string }>(
  subjects: readonly Subject[],
  answer: (subject: Subject) => Promise<Answer>,
  nothing: Omit<Answer, "words">,
): Promise<(Answered & Answer)[]> {
  const items: (Answered & Answer)[] = [];
  for (const subject of subjects) {
    try {
      items.push({ subject, status: "ok", code: null, hint: null, ...(await answer(subject)) });
    } catch (thrown) {
      if (!(thrown instanceof HeadgateError) || thrown instanceof InvariantError) throw thrown;
      const { code, message: words, advice: hint } = thrown;
      items.push({ ...nothing, subject, status: "refused", words, code, hint } as Answered & Answer);
    }
  }
  return items;
}

interface Done {
  readonly words: string;
  /** The new run of a replay. */
  readonly run: string | null;
}

class Commands {
  readonly #parts: ActionParts;
  readonly #options: Shown<ActionOptions>;
  readonly #author: { readonly by: string; readonly why: string };
  readonly #provisioner: RunProvisioner;
  readonly #previews: Previews;
  readonly #checksUntilMs: number;

  constructor(
    parts: ActionParts,
    { options, subjects }: Pick<BodyOf<typeof actionEndpoints.command>, "options" | "subjects">,
    author: { readonly by: string; readonly why: string },
  ) {
    this.#parts = parts;
    this.#options = options;
    this.#author = author;
    this.#checksUntilMs = parts.clock.monotonicMs() + CHECKS_MS;
    this.#previews = new Previews(parts, { options, subjects }, new AbortController().signal);
    this.#provisioner = new RunProvisioner(parts);
  }

  async close(): Promise<void> {
    await this.#previews.close();
    await this.#provisioner.close();
  }

  async perform(action: Action, subject: Subject): Promise<Done> {
    const { ledger, config } = this.#parts;
    const execute = this.#parts.execute;
    const author = this.#author;
    const { overwrite, discard } = this.#options;
    switch (action) {
      case "replay": {
        await this.#previews.assertMaps(subject);
        const { run, file } = await execute({ order: "replay", run: runOf(subject), ...this.#replay, ...author });
        return { words: `run ${run} takes ${file} again`, run };
      }
      case "provision":
        return await this.#provision(subject);
      case "release": {
        const released = await execute({ order: "release", run: runOf(subject), overwrite, discard, ...author });
        return { words: `${released.file} is sent as it is`, run: null };
      }
      case "recheck":
        return { words: await this.#recheck(runOf(subject)), run: null };
      case "cancel": {
        const { file, was } = await execute({ order: "cancel", run: runOf(subject), ...author });
        return { words: `${file} is cancelled; it was ${was}`, run: null };
      }
      case "forget": {
        const { path, arrivals } = await execute({ order: "forget", ...(await fileOf(subject, ledger)), ...author });
        return { words: `${arrivals} versions of ${path} are forgotten`, run: null };
      }
      case "pause": {
        const what = named(subject, config);
        await execute({ order: "pause", ...what, ...author });
        return { words: `the ${what.kind} ${what.name} is paused: ${EFFECTS[what.kind]}`, run: null };
      }
      case "resume": {
        const what = named(subject, config);
        const { wasPaused } = await execute({ order: "resume", ...what, ...author });
        return { words: `the ${what.kind} ${what.name} ${wasPaused ? "is resumed" : "was not paused"}`, run: null };
      }
    }
  }

  /** Says what the check has found, also where that is what was known before. */
  async #recheck(id: string): Promise<string> {
    const { ledger, scheduler, clock, execute } = this.#parts;
    const before = await mustFindRun(id, ledger);
    await execute({ order: "recheck", runs: [id], ...this.#author });
    for (;;) {
      const run = await mustFindRun(id, ledger);
      const at = `checked at ${timeWords(clock.now().epochMilliseconds)}`;
      if (run.state !== before.state) return `${at}: it was ${before.state}, and is ${run.state} now`;
      const waits = scheduler.waitReason(run);
      if (waits !== undefined && run.reason?.message === before.reason?.message)
        return `${at}: nothing has changed, it is ${run.state}: ${waits}`;
      if (waits !== undefined) return `${at}: it is still ${run.state}, with another reason: ${run.reason?.message}`;
      if (clock.monotonicMs() >= this.#checksUntilMs) return "the check is in progress; the history says what it finds";
      await clock.sleep(CHECK_POLL_MS);
    }
  }

  get #replay() {
    const { trigger, mapper, settings, rows, rejectedOnly, overwrite } = this.#options;
    return { trigger, mapper, settings: settings && { ...settings }, rows, rejectedOnly, overwrite };
  }

  /** The created structure is part of the history of the run, and the run is checked again. */
  async #provision(subject: Subject): Promise<Done> {
    const { ledger, execute } = this.#parts;
    const { by, why } = this.#author;
    const run = await mustFindRun(runOf(subject), ledger);
    assertHeld(run);
    const { created, impossible, error } = await this.#provisioner.provision(run, false, new AbortController().signal);
    if (created.length > 0) {
      const detail = `created by ${by}${why === "" ? "" : `: ${why}`}: ${createdWords(created)}`;
      await ledger.addEvent({
        arrivalId: run.arrivalId,
        runId: run.id,
        operationId: null,
        what: "structure.created",
        detail,
      });
      // All held runs are checked again: others may wait for the same structure.
      await execute({ order: "recheck", ...this.#author });
    }
    if (error !== null) throw error;
    const done = created.length === 0 ? "nothing was missing" : `created ${createdWords(created)}`;
    return { words: impossible.length === 0 ? done : `${done}; ${impossible.join("; ")}`, run: null };
  }
}

// Limits of requests that cost processor time: one at a time for each person, and few for all people.

/** A newer request of a person ends the one before. */
export class NewestRequests {
  readonly #operation: string;
  readonly #current = new Map<string, AbortController>();

  /** `operation`: of the error with which an ended request is answered. */
  constructor(operation: string) {
    this.#operation = operation;
  }

  /**
   * `work` receives a signal that is aborted when the client has gone (`gone`), by a newer request and by `close`.
   * Throws `RejectedError` for the one that was ended.
   */
  async run<Answer>(
    person: string,
    gone: AbortSignal,
    work: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    this.#current.get(person)?.abort();
    const mine = new AbortController();
    this.#current.set(person, mine);
    try {
      return await work(AbortSignal.any([gone, mine.signal]));
    } catch (thrown) {
      // A client that has gone receives neither.
      if (!mine.signal.aborted && !gone.aborted) throw thrown;
      throw new RejectedError("HG-OPS-010", { operation: this.#operation, subject: person, cause: thrown });
    } finally {
      if (this.#current.get(person) === mine) this.#current.delete(person);
    }
  }

  close(): void {
    for (const request of this.#current.values()) request.abort();
  }
}

// Shows the consequence of an action before it is performed; nothing is changed.

interface Previewed {
  readonly words: string;
  readonly detail: PreviewDetail | null;
}

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
