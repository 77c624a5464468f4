/** A settled arrival meets the triggers: it becomes a run with all that binds it, or is unmatched, with the reason. */
import type { Provenance } from "../drops/drop.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { MapperCatalogue } from "../mapping/mapping.ts";
import type { Arrival, BatchLimits, Binding } from "../model.ts";
import type { Logger } from "../support/log.ts";

/** What a claim needs of a trigger; the configuration's triggers have this shape. */
export interface ClaimingTrigger {
  readonly name: string;
  readonly mapper: string;
  readonly service?: string | undefined;
  readonly rows: Binding["rows"];
  readonly lane?: string | undefined;
  readonly operationPrefix?: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface ClaimParts {
  readonly ledger: Ledger;
  readonly catalogue: MapperCatalogue;
  readonly log: Logger;
  /** The trigger that claims a file, and the names of others that would have. */
  match(
    file: Pick<Arrival, "drop" | "path">,
    provenance: Provenance | null,
  ): { readonly claimed: ClaimingTrigger | null; readonly others: readonly string[]; readonly why: string };
  /** How a file came, when its drop knows. */
  provenance(file: Pick<Arrival, "drop" | "path">): Provenance | null;
  laneOf(trigger: ClaimingTrigger, drop: string, service: string): string;
  /** The service of triggers that name none. */
  readonly defaultService: string;
  readonly limits: BatchLimits;
  /** A run was opened. */
  onRun(): void;
}

/** Callback of pick-up: afterwards the arrival is `matched` or `unmatched`. */
export async function claimArrival(arrival: Arrival, parts: ClaimParts): Promise<void> {
  const provenance = parts.provenance(arrival);
  const { claimed, others, why } =
    provenance?.standardBody === undefined
      ? parts.match(arrival, provenance)
      : { claimed: standardClaim(provenance.standardBody), others: [], why: "" };
  if (claimed === null) {
    if (arrival.state !== "unmatched" || arrival.reason !== why)
      await parts.ledger.advanceArrival(arrival.id, "unmatched", why);
    return;
  }
  if (others.length > 0) {
    parts.log.warn(
      { drop: arrival.drop, file: arrival.path, trigger: claimed.name, others },
      "several triggers match; the first takes it",
    );
  }
  const service = claimed.service ?? provenance?.service ?? parts.defaultService;
  const mapper = await parts.catalogue.find(claimed.mapper);
  const run = await parts.ledger.openRun(
    arrival.id,
    {
      trigger: claimed.name,
      service,
      mapper: mapper?.identity ?? { name: claimed.mapper, version: "", digest: "" },
      settings: claimed.metadata,
      rows: claimed.rows,
      limits: parts.limits,
      operationPrefix: provenance?.operationPrefix ?? claimed.operationPrefix,
    },
    parts.laneOf(claimed, arrival.drop, service),
  );
  if (mapper === null) {
    const message = `the trigger ${claimed.name} names the mapper ${claimed.mapper}, which does not exist`;
    await parts.ledger.advanceRun(run.id, "claimed", "quarantined", {
      reason: { code: "HG-MAP-001", message },
      detail: message,
    });
  }
  parts.onRun();
}

/**
 * The bodies of `POST /api/data` need no trigger. As at the service, a reading that cannot be stored does not keep the
 * others back; unlike there, it is reported.
 */
function standardClaim(settings: Readonly<Record<string, unknown>>): ClaimingTrigger {
  return { name: "POST /api/data", mapper: "push-body", rows: "lenient", metadata: settings };
}
