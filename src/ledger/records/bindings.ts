/** The bindings of runs, stored once for all runs that share one. */
import type { Binding } from "../../model.ts";
import { brokenInvariant } from "../transitions.ts";
import { row, type Steps } from "./store.ts";

export function* bindingId(binding: Binding): Steps<number> {
  const json = jsonOfBinding(binding);
  const known = yield* row<{ id: number }>("SELECT id FROM bindings WHERE json = ?", json);
  if (known !== undefined) return known.id;
  const added = yield* row<{ id: number }>("INSERT INTO bindings (json) VALUES (?) RETURNING id", json);
  if (added === undefined) throw brokenInvariant("bind run", binding.trigger, "no row came back");
  return added.id;
}

/** Cached, since many runs share a binding, which is never changed. */
const bindingTexts = new WeakMap<Binding, string>();

export function jsonOfBinding(binding: Binding): string {
  const text = bindingTexts.get(binding) ?? JSON.stringify(binding);
  bindingTexts.set(binding, text);
  return text;
}
