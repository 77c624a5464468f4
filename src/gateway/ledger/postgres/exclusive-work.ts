/**
 * Work that only one process with the ledger may do at a time: guarded by an advisory lock, which the server
 * releases with the connection.
 */
import type { Client } from "pg";
import type { Clock } from "#core/clock.ts";
import { TransientError } from "#core/errors.ts";
import { type Fleet, waitForTurn } from "../fleet.ts";
import type { Connections } from "./connection.ts";
import { faultOf } from "./faults.ts";

const TRY = "SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS mine";

export function aloneByLock(connections: Connections, schema: string, clock: Clock): Fleet["alone"] {
  return async (key, work, signal) => {
    const fault = (thrown: unknown) => faultOf("wait for a turn", connections.place, thrown);
    const client = await connections.own().catch((thrown: unknown) => {
      throw fault(thrown);
    });
    const lost = new AbortController();
    client.on("end", () => lost.abort(turnLost(connections.place, key)));
    try {
      // The key includes the schema, since ledgers in the same database share the locks.
      const mine = () =>
        tryLock(client, `headgate ${schema} ${key}`).catch((thrown: unknown) => Promise.reject(fault(thrown)));
      await waitForTurn(mine, key, clock, signal);
      return await work(AbortSignal.any([signal, lost.signal]));
    } finally {
      await client.end().catch(() => undefined); // The server releases the lock with the connection, however it ends.
    }
  };
}

/** Null while another process has the lock. */
async function tryLock(client: Client, name: string): Promise<true | null> {
  const { rows } = await client.query<{ mine: boolean }>(TRY, [name]);
  return rows[0]?.mine === true ? true : null;
}

function turnLost(place: string, key: string): TransientError {
  return new TransientError("HG-LEDG-008", {
    operation: key,
    subject: place,
    message: `the connection to the ledger ${place} was lost, and with it the right to do this alone`,
  });
}
