/** The ledger of a gateway inside a hub, with the places of files as the hub knows them. */

import { resultOf } from "#core/settled.ts";
import type { InnerGateway } from "./inner.ts";
import type { Ledger } from "./ledger/ledger.ts";

/**
 * A hub lists a file only until it is taken, so no listing shows whether a file at rest is still stored: the hub is
 * asked. A version that was removed, or offered again since, has gone.
 */
export function storedLedger(ledger: Ledger, inner: InnerGateway | undefined): Ledger {
  if (inner === undefined) return ledger;
  return {
    ...ledger,
    async restingIn(states, limit) {
      const resting = await ledger.restingIn(states, limit);
      const versions = await inner.storedVersions(resting.map(({ run }) => run));
      return resting.map(({ run, arrival }, at) => {
        const stored = resultOf(versions[at]);
        if (stored === "no account") return { run, arrival };
        const isStored = stored.mtime === arrival.mtime;
        return { run, arrival: { ...arrival, goneAt: isStored ? null : (arrival.goneAt ?? run.changedAt) } };
      });
    },
  };
}
