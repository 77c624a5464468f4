/** How a mail leaves the hub: by SMTP, or as a file in the outbox folder. */
import { randomUUID } from "node:crypto";
import { chmod, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { isoInstant } from "#core/clock.ts";
import { publishDurably } from "#core/durable.ts";
import { wordsOf } from "#core/errors.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "#core/private-files.ts";
import { isOfOneMail, isRefusedForGood, sendBySmtp, smtpWords } from "#core/smtp/transport.ts";
import type { HubOptions } from "../options.ts";
import type { DueMail } from "../store/mail/mails.ts";

export interface Failure {
  /** For people: without a link, a password or an address. */
  readonly words: string;
  /** The recipient is refused for good, and no fault of the server. */
  readonly isFinal: boolean;
  /** The server may take others. */
  readonly isOfOneMail: boolean;
}

export interface MailCarrier {
  /** Name of the file that it became; null when a server took it. Throws what `failureOf` explains. */
  carry(mail: DueMail, signal: AbortSignal): Promise<string | null>;
  failureOf(thrown: unknown, mail: DueMail): Failure;
}

/** Null where a folder has to be named, and is not. */
export function createCarrier({ mail, store }: Pick<HubOptions, "mail" | "store">): MailCarrier | null {
  if (mail.smtp !== undefined) return smtpCarrier(mail.smtp, mail.from);
  const folder = mail.outbox ?? (store.kind === "sqlite" ? `${store.path}.outbox` : null);
  return folder === null ? null : folderCarrier(folder, mail.from);
}

/** An address given as an object is one address, whatever it holds: a list would be read as several recipients. */
function messageOf({ to, subject, text, html, createdMs }: DueMail, from: string) {
  const date = new Date(createdMs);
  return { from, to: { name: "", address: to }, subject, text, html, date, messageId: `<${randomUUID()}@headgate>` };
}

function smtpCarrier(smtp: NonNullable<HubOptions["mail"]["smtp"]>, from: string): MailCarrier {
  return {
    async carry(mail, signal) {
      await sendBySmtp(smtp, messageOf(mail, from), signal);
      return null;
    },
    failureOf: (thrown, mail) => ({
      words: withoutContent(smtpWords(thrown, smtp), mail),
      isFinal: isRefusedForGood(thrown),
      isOfOneMail: isOfOneMail(thrown),
    }),
  };
}

const WORDS_MAX = 300;
const SECRET_MIN = 10;

/** A server may repeat in its answer what it refuses. */
function withoutContent(words: string, { to, text }: DueMail): string {
  const secrets = text.split(/[\s=]+/).filter((word) => word.length >= SECRET_MIN && /[\d:]/.test(word));
  const clean = [to, ...secrets].reduce((left, secret) => left.replaceAll(secret, "…"), words);
  return clean.slice(0, WORDS_MAX);
}

function folderCarrier(folder: string, from: string): MailCarrier {
  return {
    async carry(mail) {
      const { createTransport } = await import("nodemailer");
      const transport = createTransport({ streamTransport: true, buffer: true, newline: "unix" });
      const { message } = await transport.sendMail(messageOf(mail, from));
      // The same name at each attempt, so that a mail is there once.
      const time = isoInstant(Temporal.Instant.fromEpochMilliseconds(mail.createdMs)).replace(/[:.]/g, "-");
      const path = join(folder, `${time}-${mail.id}-${mail.kind}.eml`);
      await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
      await writePrivately(path, message as Buffer);
      return path;
    },
    failureOf: (thrown) => ({ words: wordsOf(thrown), isFinal: false, isOfOneMail: false }),
  };
}

async function writePrivately(path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.part`;
  const file = await open(temporary, "w", PRIVATE_FILE);
  try {
    // An earlier attempt may have left a file of another mode.
    await chmod(temporary, PRIVATE_FILE);
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await publishDurably(temporary, path);
}
