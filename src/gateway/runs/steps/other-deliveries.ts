/**
 * Deliveries of other runs since a run was accepted: where the service has another value than the run sent, one of them
 * overwrote it if it brought a reading of the same variable and date. A run that only shares the lane says nothing.
 */

import { bodiesOf, parseBody, ReadingSet } from "#mapping/segment/payloads.ts";
import type { OpenOtherDeliveries, OtherDeliveries, StoredPlace } from "../../delivery/delivery.ts";
import type { Batch, IsoInstant, Run } from "../../model.ts";
import type { RunSteps } from "./steps.ts";

/** Runs that are compared; of more it is not known. */
const RUNS_MAX = 200;

type Parts = Pick<RunSteps, "ledger" | "spool">;

export async function otherDeliveries(
  run: Run,
  placesOf: Parameters<OpenOtherDeliveries>[0],
  { ledger, spool }: Parts,
): Promise<OtherDeliveries> {
  const since = firstAcceptance(await ledger.batches(run.id));
  const others = since === null ? [] : await ledger.acceptedSince(run, since, RUNS_MAX);
  const places = new ReadingSet(`${spool.segmentPath(run.id)}.others.part`);
  let unknown = others.length === RUNS_MAX ? `${RUNS_MAX} or more later files delivered to the same targets` : null;
  try {
    for (const other of others.toReversed()) {
      const batches = (await ledger.batches(other.id)).filter(({ acceptedAt }) => acceptedAt !== null);
      if (await addPlaces(other, batches, { places, placesOf, spool })) continue;
      unknown ??= unknownDatesOf(other);
    }
  } catch (thrown) {
    await places.close();
    throw thrown;
  }
  return {
    unknown,
    has({ variableId, atMs, version }, acceptedAt) {
      const acceptedMs = places.valueOf({ target: `${variableId}`, atMs, version: version ?? "", value: 0 });
      return acceptedMs !== undefined && acceptedMs >= Date.parse(acceptedAt);
    },
    close: () => places.close(),
  };
}

/** Of a later run whose payload is no longer kept. */
export function unknownDatesOf({ id, path }: Pick<Run, "id" | "path">): string {
  return `the later file ${path} (run ${id}) delivered to the same targets, and its dates are no longer known`;
}

/**
 * The time of acceptance is kept in place of the value; the run that was opened last counts. False when the payload is
 * not here in full.
 */
async function addPlaces(
  { id }: Run,
  accepted: readonly Batch[],
  means: {
    readonly places: ReadingSet;
    readonly placesOf: (elements: ReturnType<typeof parseBody>) => Promise<readonly StoredPlace[]>;
    readonly spool: Parts["spool"];
  },
): Promise<boolean> {
  const segment = await means.spool.openSegment(id);
  if (segment === null) return false;
  const acceptedMs = new Map(accepted.map((batch) => [batch.digest, Date.parse(batch.acceptedAt ?? "")]));
  let read = 0;
  for await (const { slice, body } of bodiesOf(segment, accepted)) {
    const found = await means.placesOf(parseBody(body));
    const value = acceptedMs.get(slice.digest) ?? Number.NaN;
    const readings = found.map(({ variableId, atMs, version }) => ({
      target: `${variableId}`,
      atMs,
      version: version ?? "",
      value,
    }));
    means.places.add(readings, id);
    read += 1;
  }
  return read === accepted.length;
}

function firstAcceptance(batches: readonly Batch[]): IsoInstant | null {
  return batches.reduce<IsoInstant | null>(
    (first, { acceptedAt }) => (acceptedAt !== null && (first === null || acceptedAt < first) ? acceptedAt : first),
    null,
  );
}
