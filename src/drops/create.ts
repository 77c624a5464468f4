/** Creates the drop of a configuration. */
import { InvariantError } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import type { Drop } from "./drop.ts";
import { createFtpDrop } from "./ftp/ftp.ts";
import { IntakeDrop, type IntakeFacts } from "./intake/intake.ts";
import { LocalDrop } from "./local/local.ts";
import type { DropOptions, HubDropOptions } from "./options.ts";
import { type PutFile, putIntoFolder } from "./put-file.ts";
import { createSftpDrop } from "./sftp/sftp.ts";

export interface DropFacts {
  readonly log: Logger;
  readonly intake?: IntakeFacts;
  /** Makes the drops of a hub that has the gateway inside. */
  readonly hubDrop?: ((options: HubDropOptions) => Drop) | undefined;
}

/** Uses neither disk nor network. */
export function createDrop(options: DropOptions, { log, intake, hubDrop }: DropFacts): Drop {
  const lack = (words: string) =>
    new InvariantError("HG-BUG-001", { operation: "create drop", subject: options.name, message: words });
  switch (options.kind) {
    case "local":
      return Object.assign(new LocalDrop(options, log), { put: (file: PutFile) => putIntoFolder(options, file) });
    case "sftp":
      return createSftpDrop(options, log);
    case "ftp":
      return createFtpDrop(options, log);
    case "http":
      if (intake === undefined) throw lack("an intake needs the spool, the services and the triggers");
      return new IntakeDrop(options, intake, log);
    case "hub":
      if (hubDrop === undefined) throw lack("only a gateway inside a hub has a drop of the hub");
      return hubDrop(options);
  }
}
