/** Puts a file into a drop by a person's command: what holds for every kind, and a folder of this machine. */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { link, rm, stat } from "node:fs/promises";
import { join, posix } from "node:path";
import { pipeline } from "node:stream/promises";
import { syncDirectory, syncFile } from "#core/durable.ts";
import { HeadgateError, RejectedError, systemCode, TransientError, wordsOf } from "#core/errors.ts";
import type { DropOptions, LocalOptions } from "./options.ts";
import { isPlainName, listingFilter, OWN_PREFIX } from "./paths.ts";

const OPERATION = "put file into drop";

export interface PutFile {
  readonly name: string;
  readonly content: AsyncIterable<Uint8Array>;
  /** The person. */
  readonly by: string;
}

/** `path`: at the drop. */
export interface FilePut {
  readonly path: string;
  readonly bytes: number;
}

/**
 * The file appears whole under its name, which no other file has. Throws `RejectedError` for a name that the drop would
 * not pick up or that is in use, and `TransientError` when the folder cannot be written; nothing remains then.
 */
export async function putIntoFolder(options: LocalOptions, { name, content }: PutFile): Promise<FilePut> {
  const subject = `${options.name}: ${name}`;
  const refusal = whyNotTaken(options, name);
  if (refusal !== null) throw refusedPut(subject, refusal, "Choose another name, or change the settings of the drop.");
  // No listing returns such a name.
  const temporary = join(options.path, `${OWN_PREFIX}upload-${randomUUID()}.tmp`);
  try {
    await pipeline(content, createWriteStream(temporary, { flags: "wx" }));
    const { size } = await stat(temporary);
    if (size > options.maxFileSize)
      throw refusedPut(
        subject,
        `it has ${size} bytes`,
        `The drop takes at most ${options.maxFileSize} (\`maxFileSize\`).`,
      );
    await syncFile(temporary);
    // A rename would replace a file of that name.
    await link(temporary, join(options.path, name));
    await syncDirectory(options.path);
    return { path: name, bytes: size };
  } catch (thrown) {
    throw failureOf(thrown, subject);
  } finally {
    await rm(temporary, { force: true });
  }
}

function whyNotTaken(options: LocalOptions, name: string): string | null {
  const fault = nameFault(name);
  if (fault !== null) return fault;
  if (!listingFilter(options).takesFile(name)) return "the patterns of the drop leave out such a name";
  if (options.temporaryNames.some((pattern) => posix.matchesGlob(name, pattern)))
    return "such a name stands for a file that is still being written";
  return null;
}

function failureOf(thrown: unknown, subject: string): unknown {
  if (thrown instanceof HeadgateError) return thrown;
  const code = systemCode(thrown);
  if (code === "EEXIST") return refusedPut(subject, "there is a file of this name", "Choose another name.");
  if (code === undefined) return thrown;
  const message = `the file cannot be written: ${wordsOf(thrown)}`;
  return new TransientError("HG-DROP-013", { operation: OPERATION, subject, message, cause: thrown });
}

export function refusedPut(subject: string, why: string, hint: string): RejectedError {
  return new RejectedError("HG-OPS-012", {
    operation: OPERATION,
    subject,
    message: `${subject} is refused: ${why}`,
    hint,
  });
}

export function nameFault(name: string): string | null {
  return isPlainName(name) && !/[\\\p{Cc}]/u.test(name) ? null : "this is not a plain name of a file";
}

/** Why no file can be put into a drop of a kind without `put`. */
export function whyNoUploads({ kind }: Pick<DropOptions, "kind">): string {
  return kind === "hub" ? "its files are those that the hub takes" : "its files are on a server, where others put them";
}
