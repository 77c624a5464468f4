import { z } from "zod";

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
});

export const ledgerOptions = z
  .discriminatedUnion("kind", [sqliteLedger])
  .prefault({ kind: "sqlite" })
  .describe("The durable record of arrivals, runs, batches and outcomes.");
export type LedgerOptions = z.output<typeof ledgerOptions>;
