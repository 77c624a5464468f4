/** From what a page shows to the subject of a command. */
import type { Action, Item, Subject } from "../contract.ts";

export interface Actable extends Pick<Item, "run" | "drop" | "path" | "trigger" | "actions"> {
  readonly kind?: string;
}

export interface Target {
  readonly subject: Subject;
  readonly name: string;
}

/** Null when the item lacks what the action works on. */
export function targetOf(action: Action, { run, drop, path, trigger, kind }: Actable): Target | null {
  const name = path ?? drop ?? trigger ?? "";
  if (action === "forget") return drop === null || path === null ? null : { subject: { drop, path }, name };
  if (action === "pause" || action === "resume") {
    const isTrigger = trigger !== null && (kind === "trigger" || drop === null);
    const paused = isTrigger ? trigger : drop;
    return paused === null ? null : { subject: { kind: isTrigger ? "trigger" : "drop", name: paused }, name: paused };
  }
  return run === null ? null : { subject: { run }, name };
}

/** Each action that one of the items has, with the number of those that have it; the most likely first. */
export function actionsOf(items: readonly Actable[]): readonly { readonly action: Action; readonly count: number }[] {
  const counts = new Map<Action, number>();
  for (const item of items)
    for (const action of item.actions)
      if (targetOf(action, item) !== null) counts.set(action, (counts.get(action) ?? 0) + 1);
  return [...counts].map(([action, count]) => ({ action, count }));
}

export function sameSubject(one: Subject, other: Subject): boolean {
  const words = (subject: Subject) => JSON.stringify(Object.entries(subject).sort());
  return words(one) === words(other);
}
