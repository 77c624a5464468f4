/** The actions of persons: previews, and commands with an answer for each subject. */

import { type Clock, timeWords } from "#core/clock.ts";
import { HeadgateError, InvariantError, RejectedError } from "#core/errors.ts";
import { FairQueue } from "#core/turns.ts";
import type { Closer } from "../closers.ts";
import type { GatewayConfig } from "../config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { ActionOptions, actionEndpoints, Subject } from "../operations/api/actions.ts";
import type { Action } from "../operations/api/attention.ts";
import type { BodyOf, HandlersOf, Person, Shown } from "../operations/api/endpoint.ts";
import { createdWords } from "../provisioning/provisioner.ts";
import { mustFindRun } from "../runs/commands/command.ts";
import type { CommandResults, OperatorCommand } from "../runs/commands.ts";
import type { BindingParts } from "../runs/replay-mapper.ts";
import type { Scheduler } from "../runs/scheduler.ts";
import type { Spool } from "../spool/spool.ts";
import { NewestRequests } from "./costly-requests.ts";
import { type Previewed, Previews } from "./preview.ts";
import { assertHeld, RunProvisioner } from "./provision-runs.ts";
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
