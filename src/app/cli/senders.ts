/** The senders of traced files that no run of them names: of unclaimed ones and of containers, at a hub. */

import type { TracedFile } from "#gateway/ledger/ledger.ts";
import type { HubOptions } from "#hub/options.ts";

/** By the ids of their arrivals. */
export async function sendersOf(
  hub: HubOptions | null,
  files: readonly TracedFile[],
): Promise<ReadonlyMap<number, string>> {
  const senders = new Map<number, string>();
  if (hub === null) return senders;
  const { storedSenders } = await import("../platform/stored-files.ts");
  const unknown = files.filter(({ runs }) => runs.every(({ run }) => run.binding.sender === undefined));
  for (const [drop, own] of Map.groupBy(unknown, ({ arrival }) => arrival.drop)) {
    const known = await storedSenders(
      hub,
      drop,
      own.map(({ arrival }) => arrival.path),
    );
    for (const { arrival } of own) {
      const sender = known.get(arrival.path);
      if (sender !== undefined) senders.set(arrival.id, sender);
    }
  }
  return senders;
}
