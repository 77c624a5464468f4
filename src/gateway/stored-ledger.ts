/** The ledger of a gateway inside a hub, with the places of files as the hub knows them. */
import type { Ledger } from "../ledger/ledger.ts";
import type { InnerGateway } from "./inner.ts";

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
      const stored = new Map<string, ReadonlyMap<string, string> | null>();
      for (const [drop, some] of Map.groupBy(resting, ({ run }) => run.drop)) {
        const paths = some.map(({ run }) => run.path);
        stored.set(drop, await inner.storedVersions(drop, paths));
      }
      return resting.map(({ run, arrival }) => {
        const versions = stored.get(run.drop) ?? null;
        if (versions === null) return { run, arrival };
        const isStored = versions.get(run.path) === arrival.mtime;
        return { run, arrival: { ...arrival, goneAt: isStored ? null : (arrival.goneAt ?? run.changedAt) } };
      });
    },
  };
}
