/**
 * Queries mappers for their facts and for the validity of settings, in a process of its own: a module may do
 * anything as soon as it is loaded.
 */

import { ConfigError, TransientError } from "#core/errors.ts";
import { nameOf } from "../mapper-files.ts";
import { type AskOutcome, type HostReports, MappingHost } from "./mapping-host.ts";
import type { MapperFacts, MapperModule, TaskAnswer, TaskRequest } from "./messages.ts";

export interface Inspector {
  /** Throws a `ConfigError` when the module cannot be loaded, or does not end. */
  describe(module: MapperModule): Promise<MapperFacts>;
  /** Null when the settings are valid. */
  settingsFault(module: MapperModule, settings: Readonly<Record<string, unknown>>): Promise<string | null>;
  /** Null when the case has the expected result; `casesOf` is the module beside the cases. */
  caseFault(module: MapperModule, casesOf: string, name: string): Promise<string | null>;
  close(): Promise<void>;
}

export interface InspectorLimits {
  /** Bytes that one mapper may use. */
  readonly memory: number;
  /** Milliseconds in which a module has to load. */
  readonly loadLimit: number;
  /** Milliseconds for each case. */
  readonly caseLimit: number;
}

const LIMITS: InspectorLimits = { memory: 512_000_000, loadLimit: 10_000, caseLimit: 60_000 };
/** A case fails by its result alone. */
const SILENT: HostReports = { fault: () => undefined, late: () => undefined };
/** The process ends after this long without a query, in milliseconds. */
const IDLE_MS = 3_000;

export function createInspector(limits: InspectorLimits = LIMITS): Inspector {
  let child: MappingHost | null = null;
  let idle: NodeJS.Timeout | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  async function end(): Promise<void> {
    const ended = child;
    child = null;
    await ended?.kill();
  }

  /**
   * In a process that was used before, a failure may be the fault of another mapper: then the query is
   * repeated in a fresh one.
   */
  async function askChild(request: TaskRequest): Promise<AskOutcome> {
    clearTimeout(idle);
    for (;;) {
      if (isClosed) return { end: "cancelled" };
      child ??= new MappingHost({ memory: limits.memory, threads: 1, writable: [] }, SILENT);
      const { outcome, isShared } = await child.ask(request, { timeLimit: timeLimitOf(request, limits) });
      const isClean = outcome.end === "answered" && outcome.left.length === 0;
      if (!isClean) await end();
      if (outcome.end !== "answered" && (isShared || isClosed)) continue;
      idle = setTimeout(() => void end(), IDLE_MS);
      idle.unref();
      return outcome;
    }
  }

  function ask(request: TaskRequest): Promise<TaskAnswer> {
    const asked = turn.then(async () => answerOf(await askChild(request), request, limits));
    turn = asked.catch(() => undefined);
    return asked;
  }

  return {
    async describe(module) {
      const answer = await ask({ kind: "describe", ...module });
      if (answer.kind === "facts") return answer.facts;
      throw strange(module, answer);
    },
    settingsFault: async (module, settings) => checked(await ask({ kind: "settings", settings, ...module }), module),
    caseFault: async (module, casesOf, name) => checked(await ask({ kind: "case", casesOf, name, ...module }), module),
    async close() {
      isClosed = true;
      await end();
      await turn;
      clearTimeout(idle);
      await end();
    },
  };
}

function checked(answer: TaskAnswer, module: MapperModule): string | null {
  if (answer.kind === "checked") return answer.fault;
  throw strange(module, answer);
}

function answerOf(outcome: AskOutcome, request: TaskRequest, limits: InspectorLimits): TaskAnswer {
  const facts = { operation: "load mapper", subject: request.modulePath };
  const refuse = (why: string) => {
    const what = request.kind === "case" ? `does not pass its case ${request.name}` : "cannot be loaded";
    const message = `the mapper ${nameOf(request.modulePath)} ${what}: ${why}`;
    return new ConfigError(request.kind === "case" ? "HG-MAP-018" : "HG-MAP-003", { ...facts, message });
  };
  switch (outcome.end) {
    case "answered":
      if (outcome.answer.kind === "unusable")
        throw new ConfigError(outcome.answer.code, { ...facts, message: outcome.answer.message });
      if (outcome.answer.kind === "transient")
        throw new TransientError(outcome.answer.code, { ...facts, message: outcome.answer.message });
      return outcome.answer;
    case "not started":
      throw new TransientError("HG-MAP-017", { ...facts, message: outcome.words });
    case "late":
      throw refuse(`it took longer than ${timeLimitOf(request, limits) / 1000} s`);
    case "memory":
      throw refuse(`it took more than ${Math.round(limits.memory / 1e6)} MB of memory`);
    case "cancelled":
      throw new TransientError("HG-MAP-013", { ...facts, message: "the gateway is stopping" });
    default:
      throw refuse(`it ${outcome.end === "fault" ? `failed: ${outcome.words}` : outcome.words}`);
  }
}

function timeLimitOf({ kind }: TaskRequest, limits: InspectorLimits): number {
  return kind === "case" ? limits.caseLimit : limits.loadLimit;
}

function strange(module: MapperModule, answer: TaskAnswer): ConfigError {
  return new ConfigError("HG-MAP-003", {
    operation: "load mapper",
    subject: module.modulePath,
    message: `the process of the mapper gave an unexpected response: ${answer.kind}`,
  });
}
