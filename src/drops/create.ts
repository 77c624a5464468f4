/** Creates the drop of a configuration. */
import { InvariantError } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import type { Drop } from "./drop.ts";
import { createFtpDrop } from "./ftp/ftp.ts";
import { IntakeDrop, type IntakeFacts } from "./intake/intake.ts";
import { LocalDrop } from "./local/local.ts";
import type { DropOptions } from "./options.ts";
import { createSftpDrop } from "./sftp/sftp.ts";

/** Uses neither disk nor network. */
export function createDrop(options: DropOptions, facts: { readonly log: Logger; readonly intake?: IntakeFacts }): Drop {
  if (options.kind === "local") return new LocalDrop(options, facts.log);
  if (options.kind === "sftp") return createSftpDrop(options, facts.log);
  if (options.kind === "http") {
    if (facts.intake !== undefined) return new IntakeDrop(options, facts.intake, facts.log);
    const message = "an intake needs the spool, the services and the triggers";
    throw new InvariantError("HG-BUG-001", { operation: "create drop", subject: options.name, message });
  }
  return createFtpDrop(options, facts.log);
}
