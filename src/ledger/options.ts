import { z } from "zod";
import { duration } from "../support/quantities.ts";

const sqliteLedger = z.strictObject({
  kind: z.literal("sqlite").describe("An SQLite file on a local disk: one gateway, nothing to install."),
  path: z
    .string()
    .min(1)
    .default("./state/ledger.sqlite")
    .describe(
      "File of the ledger; its folder is made when it is missing. It must be on a local disk, since network shares do not lock reliably.",
    )
    .meta({ examples: ["/var/lib/headgate/ledger.sqlite"] }),
  keep: duration("90d").describe(
    "How long files are remembered after they went from their drop; what needs a person is never forgotten. An identical upload after that counts as new. Default 90d.",
  ),
});

export const ledgerOptions = z
  .discriminatedUnion("kind", [sqliteLedger])
  .prefault({ kind: "sqlite" })
  .describe("The durable record of arrivals, runs, batches and outcomes.");
export type LedgerOptions = z.output<typeof ledgerOptions>;
