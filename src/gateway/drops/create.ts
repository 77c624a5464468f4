/** Creates the drop of a configuration. Loads the code and the library of its kind, which the other kinds need not. */
import { InvariantError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Drop } from "./drop.ts";
import type { IntakeFacts } from "./intake/intake.ts";
import type { DropOptions, HubDropOptions } from "./options.ts";
import type { PutFile } from "./put-file.ts";

export interface DropFacts {
  readonly log: Logger;
  readonly intake?: IntakeFacts;
  /** Makes the drops of a hub that has the gateway inside. */
  readonly hubDrop?: ((options: HubDropOptions) => Drop) | undefined;
}

/** Uses no disk but for its own code, and no network. */
export async function createDrop(options: DropOptions, { log, intake, hubDrop }: DropFacts): Promise<Drop> {
  const lack = (words: string) =>
    new InvariantError("HG-BUG-001", { operation: "create drop", subject: options.name, message: words });
  switch (options.kind) {
    case "local": {
      const [{ LocalDrop }, { putIntoFolder }] = [await import("./local/local.ts"), await import("./put-file.ts")];
      return Object.assign(new LocalDrop(options, log), { put: (file: PutFile) => putIntoFolder(options, file) });
    }
    case "sftp":
      return (await import("./sftp/sftp.ts")).createSftpDrop(options, log);
    case "ftp":
      return (await import("./ftp/ftp.ts")).createFtpDrop(options, log);
    case "http":
      if (intake === undefined) throw lack("an intake needs the spool, the services and the triggers");
      return new (await import("./intake/intake.ts")).IntakeDrop(options, intake, log);
    case "hub":
      if (hubDrop === undefined) throw lack("only a gateway inside a hub has a drop of the hub");
      return hubDrop(options);
  }
}
