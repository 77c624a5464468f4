/** Reads the subjects of actions: a run, a file at a drop, a drop or a trigger. */

import { ConfigError, RejectedError } from "#core/errors.ts";
import type { GatewayConfig } from "../config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Pause } from "../model.ts";
import type { Subject } from "../operations/api/actions.ts";
import { mustFindRun } from "../runs/commands/command.ts";

/** The effect of a pause on new files, in words. */
export const EFFECTS: Readonly<Record<Pause["kind"], string>> = {
  drop: "it is not polled; files that were taken before are still delivered",
  trigger: "it claims nothing; its files wait at their drops, and no other trigger takes them",
};

function subjectWords(subject: Subject): string {
  if ("run" in subject) return subject.run;
  return "path" in subject ? subject.path : `${subject.kind} ${subject.name}`;
}

export function runOf(subject: Subject): string {
  if ("run" in subject) return subject.run;
  throw wrongSubject(subject, "a run");
}

/** Also by a run of the file. */
export async function fileOf(
  subject: Subject,
  ledger: Pick<Ledger, "run">,
): Promise<{ readonly drop: string; readonly path: string }> {
  if ("path" in subject) return subject;
  const { drop, path } = await mustFindRun(runOf(subject), ledger);
  return { drop, path };
}

/** `RejectedError` when the configuration has none of this name. */
export function named(
  subject: Subject,
  { drops, triggers }: Pick<GatewayConfig, "drops" | "triggers">,
): { readonly kind: Pause["kind"]; readonly name: string } {
  if (!("kind" in subject)) throw wrongSubject(subject, "a drop or a trigger");
  const { kind, name } = subject;
  const all: readonly { readonly name: string }[] = kind === "drop" ? drops : triggers;
  if (all.some((one) => one.name === name)) return { kind, name };
  throw new RejectedError("HG-OPS-004", {
    operation: "find subject",
    subject: name,
    message: `there is no ${kind} ${name}`,
  });
}

function wrongSubject(subject: Subject, wanted: string): ConfigError {
  return new ConfigError("HG-OPS-006", {
    operation: "read subject",
    subject: subjectWords(subject),
    message: `the action is about ${wanted}, not about ${subjectWords(subject)}`,
  });
}
