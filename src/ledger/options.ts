import { hostname } from "node:os";
import { z } from "zod";
import { POSTGRES_LEAST } from "../sql/postgres/version.ts";
import { duration } from "../support/quantities.ts";

const keep = duration("90d").describe(
  "How long files are remembered after they went from their drop; what needs a person is never forgotten. An identical upload after that counts as new. Default 90d.",
);

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
  keep,
});

const postgresLedger = z.strictObject({
  kind: z
    .literal("postgres")
    .describe(
      `A schema in a PostgreSQL database (${POSTGRES_LEAST}), which several gateways share: each is a node, takes over what another leaves, and never does what another does.`,
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
    .describe("Schema of the ledger's tables; made when it is missing. All nodes of a fleet name the same."),
  node: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("Name of this gateway among the nodes, unlike all others. Default: the name of the host.")
    .meta({ examples: ["north-1"] }),
  lease: duration("30s").describe(
    "A node that was not heard of for so long has lost its drops and runs to the others. The server's clock tells. Default 30s.",
  ),
  keep,
});

export const ledgerOptions = z
  .discriminatedUnion("kind", [sqliteLedger, postgresLedger])
  .prefault({ kind: "sqlite" })
  .describe("The durable record of arrivals, runs, batches and outcomes.");
export type LedgerOptions = z.output<typeof ledgerOptions>;
export type PostgresLedgerOptions = z.output<typeof postgresLedger>;

/** The file of a ledger that one process owns; null where a server holds it. */
export function ledgerFile(options: LedgerLocation): string | null {
  return options.kind === "sqlite" ? options.path : null;
}

/** The schema in which a server holds it; null where it is a file. */
export function ledgerSchema(options: LedgerOptions): string | null {
  return options.kind === "postgres" ? options.schema : null;
}

/** The name of this gateway among the nodes that share the ledger; null where no other node can. */
export function nodeName(options: LedgerLocation): string | null {
  return options.kind === "postgres" ? (options.node ?? hostname()) : null;
}

/** The options with the path of the file, if there is one, as `resolve` returns it. */
export function withLedgerFile(options: LedgerOptions, resolve: (path: string) => string): LedgerOptions {
  return options.kind === "sqlite" ? { ...options, path: resolve(options.path) } : options;
}

/** What tells where a ledger is. */
export type LedgerLocation =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly node?: string | undefined };
