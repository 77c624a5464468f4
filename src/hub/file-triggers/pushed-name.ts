/** The name of a file that came by the custom push route: as the sender says, or made from the trigger and the time. */
import { MIMEType } from "node:util";
import type { StoredFileTrigger } from "#wire/index.ts";
import { kindOf } from "../files/kinds.ts";

/** By the content type of the body. */
const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ["application/json", "json"],
  ["application/xml", "xml"],
  ["text/xml", "xml"],
  ["text/plain", "txt"],
  ["text/csv", "csv"],
  ["application/zip", "zip"],
  ["application/gzip", "gz"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
]);
/** Such a name has 255 bytes at most, of which a character takes four. */
const NAME_CHARACTERS_MAX = 50;
const UNKNOWN = ".bin";

/** RFC 6266: `filename*` before `filename`. Null: it names none; undefined: it cannot be read. */
export function dispositionName(header: string): string | null | undefined {
  let parameters: MIMEType["params"];
  try {
    // Its parameters have the syntax of those of a media type.
    parameters = new MIMEType(`x/${header.trim()}`).params;
  } catch {
    return undefined;
  }
  const extended = parameters.get("filename*");
  if (extended === null) {
    const plain = parameters.get("filename");
    return plain === null ? null : utf8Of(plain);
  }
  const [, charset = "", encoded = ""] = /^([\w-]*)'[\w-]*'(.*)$/.exec(extended) ?? [];
  if (charset.toLowerCase() !== "utf-8") return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/** Headers are read as Latin-1, and many senders write UTF-8 into them. */
function utf8Of(text: string): string {
  const decoded = Buffer.from(text, "latin1").toString("utf8");
  return decoded.includes("\ufffd") ? text : decoded;
}

/** Such as `acme-20260301T041530123Z.csv`. */
export function madeName(
  { id, name }: Pick<StoredFileTrigger, "id" | "name">,
  contentType: string | undefined,
  at: Temporal.Instant,
): string {
  const words = (name ?? "").replaceAll(/[^\p{L}\p{N}._-]+/gu, "-").replaceAll(/^[.-]+|[.-]+$/g, "");
  const time = at.toString({ fractionalSecondDigits: 3 }).replaceAll(/[-:.]/g, "");
  const type = contentType?.split(";")[0]?.trim().toLowerCase() ?? "";
  const begin = [...words].slice(0, NAME_CHARACTERS_MAX).join("") || `trigger-${id}`;
  return `${begin}-${time}${endingOf(type) ?? UNKNOWN}`;
}

function endingOf(type: string): string | null {
  const extension = EXTENSIONS.get(type);
  return extension === undefined ? null : `.${extension}`;
}

/** Many senders name no content type. `head`: of the content. A text of an unknown type stays one. */
export function namedByContent(made: string, head: Uint8Array): string {
  const { cloudItemTypeId, contentType } = kindOf(head, "");
  if (!made.endsWith(UNKNOWN) || cloudItemTypeId === "Text") return made;
  return made.slice(0, -UNKNOWN.length) + (endingOf(contentType) ?? UNKNOWN);
}
