/** The ledger in a schema of a PostgreSQL database, which many nodes share. */
import { hostname } from "node:os";
import { HeadgateError, TransientError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { durabilityRisks } from "#core/sql/postgres/durability.ts";
import { migrate } from "#core/sql/postgres/migrate.ts";
import type { Ledger } from "../ledger.ts";
import type { LedgerMeans } from "../means.ts";
import type { PostgresLedgerOptions } from "../options.ts";
import { ledgerMethods } from "../records/methods.ts";
import { harmless } from "../records/observers.ts";
import { Connections } from "./connection.ts";
import { aloneByLock } from "./exclusive-work.ts";
import { faultOf, openFault } from "./faults.ts";
import { postgresFleet } from "./fleet.ts";
import { assertCurrent, LEDGER_SCHEMA } from "./schema.ts";
import { NodeSession, RENEWALS } from "./sessions.ts";
import { sharedBytes } from "./shared.ts";
import { PostgresStore } from "./store.ts";

/** Longest time that a sleeping process may block others by an open transaction. */
const IDLE_TRANSACTION_MS = 5_000;

/**
 * `ConfigError` when the server refuses user, database or schema (`HG-LEDG-002`) or the schema is of another
 * version (`-003`).
 */
export async function openPostgresLedger(options: PostgresLedgerOptions, means: LedgerMeans): Promise<Ledger> {
  const { schema, lease } = options;
  const connections = new Connections({
    url: options.url,
    schema,
    application: `headgate ${options.node ?? hostname()}`,
    idleTransactionMs: Math.max(1, Math.min(IDLE_TRANSACTION_MS, Math.floor(lease / 2))),
    log: means.log,
  });
  try {
    if (means.readOnly === true) await assertCurrent(connections.readers, schema, connections.place);
    else await bringUp(connections, schema, means.log);
  } catch (thrown) {
    await connections.close();
    throw openingFault(connections.place, thrown);
  }
  const session = await joinFleet(connections, options, means);
  const store = new PostgresStore(connections, {
    clock: means.clock,
    readOnly: means.readOnly === true,
    onEvent: harmless(means),
    log: means.log,
    session: () => session,
  });
  return {
    fleet: postgresFleet(
      store,
      session === null ? null : lease / RENEWALS,
      aloneByLock(connections, schema, means.clock),
    ),
    shared: sharedBytes({
      connections,
      clock: means.clock,
      readOnly: means.readOnly === true,
      session: () => session?.id ?? null,
    }),
    ...ledgerMethods(store),
    close: async () => {
      await store.flush();
      await session?.close();
      await connections.close();
    },
  };
}

async function joinFleet(
  connections: Connections,
  { node, lease }: PostgresLedgerOptions,
  { clock, log, watch }: LedgerMeans,
): Promise<NodeSession | null> {
  if (watch === undefined) return null;
  try {
    return await NodeSession.open({
      pool: connections.readers,
      node: node ?? hostname(),
      ...{ lease, clock, log, watch },
    });
  } catch (thrown) {
    await connections.close();
    throw openingFault(connections.place, thrown);
  }
}

async function bringUp(connections: Connections, schema: string, log: Logger | undefined): Promise<void> {
  const applied = await migrate(await connections.writer(), LEDGER_SCHEMA, schema, connections.place);
  if (applied.length > 0)
    log?.info({ ledger: connections.place, migrations: applied }, "the ledger's schema was brought up");
  for (const risk of await durabilityRisks(connections.readers)) log?.warn({ ledger: connections.place }, risk);
}

/** A server that cannot be reached may return; any other fault needs an administrator. */
function openingFault(place: string, thrown: unknown): unknown {
  const fault = faultOf("open ledger", place, thrown);
  if (fault instanceof TransientError || fault instanceof HeadgateError) return fault;
  return openFault(place, thrown);
}
