/** The configuration in force, setting by setting: what the file says, what is a default, and no secret. */

import { inputSchemaOf } from "#core/config/json-schema.ts";
import { type Leaf, leavesOf } from "#core/config/leaves.ts";
import type { Marked } from "#core/config/secrets.ts";
import { type GatewayConfig, gatewayConfig, writtenIn } from "./config.ts";

export interface Setting {
  readonly path: string;
  /** In milliseconds and bytes where it is a duration or a size; null when it is hidden. */
  readonly value: string | number | boolean | null;
  /** The value as a file would have it, such as `10m` or `4MB`, where it is a duration or a size; otherwise null. */
  readonly quantity: string | null;
  /** The text of the file, such as `30s` or `${env:TOKEN}`; null for a default, and for a secret. */
  readonly written: string | null;
  readonly source: "given" | "default";
  /** It is a secret, or comes from a variable or another file. */
  readonly isHidden: boolean;
}

const REFERENCE = /^\$\{(?:env|file):[^}]+\}$/;

export function settingsOf(config: GatewayConfig): readonly Setting[] {
  const schema: Marked = inputSchemaOf(gatewayConfig);
  const data = writtenIn(config);
  const written = new Map(data === undefined ? [] : leavesOf(splitTriggers(data)).map((leaf) => [leaf.path, leaf]));
  const { triggers } = schema.properties ?? {};
  const marks = { ...schema, properties: { ...schema.properties, ...(triggers && { serviceTriggers: triggers }) } };
  return leavesOf(config, marks).map((leaf) => settingOf(leaf, data === undefined ? leaf : writtenFor(leaf, written)));
}

function settingOf({ path, value, isSecret, quantity }: Leaf, written: Leaf | undefined): Setting {
  const text = written === undefined ? null : textOf(written.value);
  const isReference = text?.includes("${") === true;
  const isHidden = isSecret || isReference;
  const mayShow = !isHidden || (text !== null && REFERENCE.test(text));
  return {
    path,
    value: isHidden ? null : simple(value),
    quantity: isHidden ? null : quantity,
    written: mayShow ? text : null,
    source: written === undefined ? "default" : "given",
    isHidden,
  };
}

/** A short form such as `delivered: delete` stands for several settings. */
function writtenFor({ path }: Leaf, written: ReadonlyMap<string, Leaf>): Leaf | undefined {
  for (let at = path; at !== ""; at = parentOf(at)) {
    const found = written.get(at);
    if (found !== undefined) return found;
  }
  return undefined;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("."), path.lastIndexOf("[")));
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function simple(value: unknown): Setting["value"] {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return value === null || value === undefined ? null : JSON.stringify(value);
}

/** In force, entries `from: service` are a section of their own. */
function splitTriggers(data: object): object {
  const { triggers } = data as { readonly triggers?: unknown };
  if (!Array.isArray(triggers)) return data;
  const isOfService = (entry: unknown) =>
    typeof entry === "object" && entry !== null && "from" in entry && entry.from === "service";
  return {
    ...data,
    triggers: triggers.filter((entry) => !isOfService(entry)),
    serviceTriggers: triggers.filter(isOfService),
  };
}
