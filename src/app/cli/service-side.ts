/** The records that services keep of the operations of a file (`GET /operations/{id}` of a hub). */

import { systemClock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import { type GatewayConfig, isInsideHub, requireResolved } from "#gateway/config.ts";
import type { TracedFile } from "#gateway/ledger/ledger.ts";
import { batchStory } from "#gateway/operations/batch-story.ts";
import { ServiceClient } from "#wire/client/index.ts";
import type { ServiceOperation } from "#wire/webhook.ts";

/** For all operations together: a service that is away must not hold the trace up. */
const ASK_MS = 5_000;

export interface ServiceSide {
  /** By operation ids. */
  readonly known: ReadonlyMap<string, ServiceOperation>;
  /** The reasons why services could not be asked, by their names. */
  readonly faults: ReadonlyMap<string, string>;
}

/**
 * Asks the services about the batches that a trace shows, or about all. Operations that the service reports nothing
 * about are left out.
 */
export async function serviceSide(
  config: GatewayConfig,
  files: readonly TracedFile[],
  isAll: boolean,
): Promise<ServiceSide> {
  const known = new Map<string, ServiceOperation>();
  const faults = new Map<string, string>();
  // The gateway inside a hub has no password, and its ledger has the hub's outcomes.
  if (isInsideHub(config)) return { known, faults };
  const signal = AbortSignal.timeout(ASK_MS);
  const runs = files.flatMap((file) => file.runs);
  for (const access of config.services) {
    const ids = runs
      .filter(({ run }) => run.binding.service === access.name)
      .flatMap(({ batches }) => (isAll ? batches : batchStory(batches).shown))
      .flatMap(({ operationId, attempts }) => (attempts > 0 ? [operationId] : []));
    if (ids.length === 0) continue;
    const { timeouts } = config.push;
    try {
      requireResolved(config, "services");
    } catch (thrown) {
      faults.set(access.name, wordsOf(thrown));
      continue;
    }
    const client = new ServiceClient(access, { connections: 1, timeouts, clock: systemClock });
    try {
      for (const id of ids) {
        const operation = await client.getOperation(id, signal);
        if (operation !== null) known.set(id, operation);
      }
    } catch (thrown) {
      // The trace is then as the ledger has it.
      faults.set(access.name, wordsOf(thrown));
    } finally {
      await client.close();
    }
  }
  return { known, faults };
}

/** `stored: 3 stored (1 replaced), 0 discarded; file 12, a.csv` */
export function serviceWords({ status, stored, replaced, discarded, file }: ServiceOperation): string {
  const count = (discarded ?? []).reduce((sum, one) => sum + one.count, 0);
  const points = stored === undefined ? "" : `: ${stored} stored (${replaced ?? 0} replaced), ${count} discarded`;
  const source = file === undefined ? "" : `; file ${file.id}${file.fileName === null ? "" : `, ${file.fileName}`}`;
  return `${status}${points}${source}`;
}
