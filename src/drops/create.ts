/** The drop of a configuration. */
import type { Logger } from "../support/log.ts";
import type { Drop } from "./drop.ts";
import { FtpDrop } from "./ftp.ts";
import { LocalDrop } from "./local.ts";
import type { DropOptions } from "./options.ts";
import { SftpDrop } from "./sftp.ts";

/** Touches neither disk nor network. */
export function createDrop(options: DropOptions, facts: { readonly log: Logger }): Drop {
  if (options.kind === "local") return new LocalDrop(options, facts.log);
  if (options.kind === "sftp") return new SftpDrop(options, facts.log);
  return new FtpDrop(options, facts.log);
}
