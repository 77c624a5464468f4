/** Names of stored files: folders are allowed before the name, and nothing that leads out of them. */
import { invalidField } from "../http/problems.ts";

/** As file systems count. */
const PART_BYTES_MAX = 255;
const NAME_BYTES_MAX = 1_024;

/** Throws a 400 that says what is wrong. */
export function requireFileName(name: string, field = "Filename"): void {
  const why = fileNameFault(name);
  if (why !== null) throw invalidField(field, why);
}

/** Null for a good name; otherwise what is wrong, as the rest of a sentence. */
export function fileNameFault(name: string): string | null {
  if (name.trim() === "") return "is empty: it is the name that triggers match";
  if (/\p{Cc}/u.test(name)) return "holds a control character";
  if (!name.isWellFormed() || name.includes("\ufffd")) return "is no valid text in UTF-8";
  if (name.includes("\\")) return "holds a backslash; folders are separated by /";
  if (name.startsWith("/") || /^[A-Za-z]:/.test(name))
    return "is an absolute path; a name begins with its first folder";
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) return `is longer than ${NAME_BYTES_MAX} bytes`;
  for (const part of name.split("/")) {
    if (part.trim() === "") return "has an empty part; a name ends with the name of the file";
    if (part === "." || part === "..") return `has the part ${part}, which names another folder`;
    if (Buffer.byteLength(part) > PART_BYTES_MAX) return `has a part of more than ${PART_BYTES_MAX} bytes`;
  }
  return null;
}
