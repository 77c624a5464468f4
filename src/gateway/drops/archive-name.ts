/** Plans the place and name of a finished source file. */
import { createHash } from "node:crypto";
import { posix } from "node:path";
import { hasEscapes } from "#core/file-names.ts";
import type { FileEntry, FinishPlan, FinishRule } from "../model.ts";
import { OWN_PREFIX } from "./paths.ts";

/** Limit in bytes: the lowest that common file systems have for one name. */
const NAME_BYTES_MAX = 255;

/**
 * The plan for a file. An archived file keeps its folder and its extension, and carries `tag` (the run id, or
 * the arrival where there is no run): `in/a.csv` becomes `archive/in/a.<tag>.csv`, a name that no other file
 * has.
 */
export function planFinish(rule: FinishRule, entry: Pick<FileEntry, "path">, tag: string): FinishPlan {
  // A file whose name has escapes stays in its place until it is renamed.
  if (rule.action === "leave" || hasEscapes(entry.path)) return { action: "leave" };
  if (rule.action === "delete") return { action: "delete", tag };
  const { dir, name, ext } = posix.parse(entry.path);
  const suffix = Buffer.byteLength(ext) > 32 ? "" : ext;
  const stem = suffix === ext ? name : name + ext;
  const room = NAME_BYTES_MAX - Buffer.byteLength(`.${tag}${suffix}`);
  return { action: "archive", to: posix.join(rule.to, dir, `${shorten(stem, room)}.${tag}${suffix}`) };
}

/**
 * Name of a file between its removal from its path and its deletion or archiving; the same for the same
 * version of the file and the same plan.
 */
export function asideName(entry: FileEntry, plan: FinishPlan): string {
  const target = plan.action === "archive" ? plan.to : plan.action === "delete" ? plan.tag : undefined;
  const version = `${entry.path}\0${entry.size}\0${entry.mtime}${target === undefined ? "" : `\0${target}`}`;
  const digest = createHash("sha256").update(version).digest("hex");
  const name = plan.action === "archive" ? "archiving" : "deleting";
  return posix.join(posix.dirname(entry.path), `${OWN_PREFIX}${name}-${digest.slice(0, 24)}`);
}

function shorten(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  let short = "";
  let bytes = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > bytesMax) break;
    short += character;
  }
  return short;
}
