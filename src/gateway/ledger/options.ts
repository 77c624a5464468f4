import { hostname } from "node:os";
import { z } from "zod";
import { duration } from "#core/quantities.ts";
import { POSTGRES_LEAST } from "#core/sql/postgres/version.ts";

const keep = duration("90d").describe(
  "How long files are remembered after they left their drop; a file that needs attention is never forgotten. " +
    "An identical upload after that counts as new. Default 90d.",
);

const sqliteLedger = z.strictObject({
  kind: z.literal("sqlite").describe("An SQLite file on a local disk: one gateway, nothing to install."),
  path: z
    .string()
    .min(1)
    .default("./state/ledger.sqlite")
    .describe(
      "File of the ledger; its folder is created when it is missing. It must be on a local disk, " +
        "since network shares do not lock reliably.",
    )
    .meta({ examples: ["/var/lib/headgate/ledger.sqlite"] }),
  keep,
});

const postgresLedger = z.strictObject({
  kind: z
    .literal("postgres")
    .describe(
      `A schema in a PostgreSQL database (${POSTGRES_LEAST}), which several gateways share: ` +
        "each is a node, takes over the work of a node that ended, and never does the work of another node.",
    ),
  url: z
    .string()
    .regex(/^postgres(ql)?:\/\//, "must begin with postgres://")
    .describe("Where the database is, with user and password; `?sslmode=verify-full` asks for TLS.")
    .meta({ secret: true, examples: [`\${env:HEADGATE_LEDGER_URL}`] }),
  schema: z
    .string()
    .regex(/^[a-z_][a-z0-9_]*$/, "must be a name of small letters, digits and underscores")
    .max(63)
    .default("headgate")
    .describe("Schema of the ledger's tables; created when it is missing. All nodes of a fleet name the same."),
  node: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("Name of this gateway among the nodes, unlike all others. Default: the name of the host.")
    .meta({ examples: ["north-1"] }),
  lease: duration("30s").describe(
    "A node that has not renewed its lease for so long loses its drops and runs to the others. " +
      "The server's clock counts. Default 30s.",
  ),
  keep,
});

export const ledgerOptions = z
  .discriminatedUnion("kind", [sqliteLedger, postgresLedger])
  .prefault({ kind: "sqlite" })
  .describe("The durable record of arrivals, runs, batches and outcomes.");
export type LedgerOptions = z.output<typeof ledgerOptions>;
export type PostgresLedgerOptions = z.output<typeof postgresLedger>;

/** Path of the file of a ledger that one process owns; null for a ledger on a server. */
export function ledgerFile(options: LedgerLocation): string | null {
  return options.kind === "sqlite" ? options.path : null;
}

/** Schema of a ledger on a server; null for a ledger in a file. */
export function ledgerSchema(options: LedgerOptions): string | null {
  return options.kind === "postgres" ? options.schema : null;
}

/** Name of this gateway among the nodes that share the ledger; null where no other node can. */
export function nodeName(options: LedgerLocation): string | null {
  return options.kind === "postgres" ? (options.node ?? hostname()) : null;
}

/** The options with the path of the file, if there is one, as `resolve` returns it. */
export function withLedgerFile(options: LedgerOptions, resolve: (path: string) => string): LedgerOptions {
  return options.kind === "sqlite" ? { ...options, path: resolve(options.path) } : options;
}

/** The options that define the location of a ledger. */
export type LedgerLocation =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly node?: string | undefined };
