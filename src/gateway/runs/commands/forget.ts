/** Has the ledger forget a file. */
import { z } from "zod";
import { RejectedError } from "#core/errors.ts";
import { command } from "./command.ts";

export const forget = command(
  { drop: z.string(), path: z.string() },
  async ({ drop, path, by, why }, { ledger, log, live }) => {
    const forgotten = await ledger.forget(drop, path, { by, why });
    if (forgotten.arrivals === 0)
      throw new RejectedError("HG-CLI-002", {
        operation: "forget",
        subject: path,
        message: `the ledger knows no file ${path} at the drop ${drop}`,
      });
    log.warn({ drop, path, by, why, ...forgotten }, "the ledger forgot a file");
    live?.dropChanged(drop);
    return { drop, path, ...forgotten };
  },
);
