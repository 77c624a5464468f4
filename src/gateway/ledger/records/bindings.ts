/**
 * The bindings of runs: what many runs share is stored once for all of them; who sent the file, and what its operations
 * are named after, is in columns of the run.
 */
import type { Binding } from "../../model.ts";
import { brokenInvariant } from "../transitions.ts";
import { row, type Steps } from "./store.ts";

export function* bindingId(binding: Binding): Steps<number> {
  const json = sharedJsonOf(binding);
  const known = yield* row<{ id: number }>("SELECT id FROM bindings WHERE json = ?", json);
  if (known !== undefined) return known.id;
  const added = yield* row<{ id: number }>("INSERT INTO bindings (json) VALUES (?) RETURNING id", json);
  if (added === undefined) throw brokenInvariant("bind run", binding.trigger, "no row came back");
  return added.id;
}

/** Cached, since many runs share a binding, which is never changed. */
const sharedTexts = new WeakMap<Binding, string>();

/** Of the part that runs share. */
export function sharedJsonOf(binding: Binding): string {
  const known = sharedTexts.get(binding);
  if (known !== undefined) return known;
  const { sender: _sender, operationPrefix: _prefix, ...shared } = binding;
  const text = JSON.stringify(shared);
  sharedTexts.set(binding, text);
  return text;
}
