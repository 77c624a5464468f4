/** Binds claimed arrivals to all that their runs are made with (invariant 10). */

import { ConfigError } from "#core/errors.ts";
import type { Provenance } from "../drops/drop.ts";
import type { Binding, BoundLookup, MapperIdentity, Reason } from "../model.ts";
import type { ClaimParts } from "./claim-parts.ts";
import type { ClaimingTrigger } from "./replay-mapper.ts";
import { reasonOf } from "./steps/steps.ts";

/** The trigger name of runs of `POST /api/data`. */
export const STANDARD_BODY_TRIGGER = "POST /api/data";

/** Stands for a mapper in the bindings of master data. */
const STRUCTURE_MAPPER = "(master data)";

/** Mappers, lookup tables and zones are read once for all arrivals of a list. */
export class ClaimBindings {
  readonly #parts: ClaimParts;
  /** By the drop. */
  readonly #bound = new Map<string, Map<ClaimingTrigger, Promise<BoundClaim>>>();
  #lookups: Promise<readonly BoundLookup[]> | null = null;
  /** By triggers, each of which is of one service where zones are known. */
  readonly #zones = new Map<string, Promise<string | null>>();

  constructor(parts: ClaimParts) {
    this.#parts = parts;
  }

  /**
   * The same object for all files of a drop and a trigger, except those whose senders choose the service or the prefix.
   */
  of(claimed: ClaimingTrigger, drop: string, provenance: Provenance | null): Promise<BoundClaim> {
    if (provenance !== null) return this.#bind(claimed, drop, provenance);
    const ofDrop = this.#bound.get(drop) ?? new Map<ClaimingTrigger, Promise<BoundClaim>>();
    this.#bound.set(drop, ofDrop);
    const bound = ofDrop.get(claimed) ?? this.#bind(claimed, drop, null);
    ofDrop.set(claimed, bound);
    return bound;
  }

  async #bind(claimed: ClaimingTrigger, drop: string, provenance: Provenance | null): Promise<BoundClaim> {
    const { mapper, fault } =
      claimed.structure === true ? applierOf(claimed, this.#parts) : await mapperOf(claimed, this.#parts.versions);
    this.#lookups ??= this.#parts.lookups.bind();
    const binding = bindingOf(claimed, provenance, mapper, await this.#lookups, this.#parts);
    const zones = claimed.structure === true ? undefined : await this.#zonesFor(claimed.name, binding.service);
    const address = this.#parts.addressOf(drop);
    const more = { ...(zones === undefined ? {} : { zones }), ...(address === undefined ? {} : { address }) };
    return { binding: { ...binding, ...more }, fault };
  }

  #zonesFor(trigger: string, service: string): Promise<string | null> | undefined {
    const zones = this.#zones.get(trigger) ?? this.#parts.zones?.atClaim(trigger, service);
    if (zones !== undefined) this.#zones.set(trigger, zones);
    return zones;
  }
}

export interface BoundClaim {
  readonly binding: Binding;
  /** Why the mapper cannot be used. */
  readonly fault: Reason | null;
}

function bindingOf(
  claimed: ClaimingTrigger,
  provenance: Provenance | null,
  mapper: MapperIdentity | null,
  lookups: readonly BoundLookup[],
  parts: ClaimParts,
): Binding {
  return {
    trigger: claimed.name,
    service: claimed.service ?? provenance?.service ?? parts.defaultService,
    mapper: mapper ?? { name: claimed.mapper, version: "", digest: "" },
    settings: claimed.metadata,
    rows: claimed.rows,
    ...(claimed.rows === "strict" ? {} : { rejectShare: claimed.rejectShare }),
    ...(claimed.empty === undefined ? {} : { empty: claimed.empty }),
    limits: parts.limits,
    ...(claimed.version === undefined ? {} : { version: claimed.version }),
    ...(lookups.length === 0 ? {} : { lookups }),
    ...(provenance === null ? {} : { sender: provenance.sender }),
    operationPrefix: provenance?.operationPrefix ?? claimed.operationPrefix,
    ...(provenance?.namesTrigger === true ? { namesTrigger: true } : {}),
    ...(claimed.structure === true ? { structure: true } : {}),
  };
}

function applierOf(
  { name }: ClaimingTrigger,
  { appliesStructure }: ClaimParts,
): { readonly mapper: MapperIdentity; readonly fault: Reason | null } {
  const mapper = { name: STRUCTURE_MAPPER, version: "1", digest: "" };
  const message =
    `the trigger ${name} is for master data, which only the service itself applies: send the file to its storage, ` +
    "or bind a mapper to OpisenseMasterData in `mappings`";
  return { mapper, fault: appliesStructure ? null : { code: "HG-TRIG-003", message } };
}

/** A mapper that is missing or cannot be loaded stops only the files of its own trigger. */
async function mapperOf(
  trigger: ClaimingTrigger,
  versions: ClaimParts["versions"],
): Promise<{ readonly mapper: MapperIdentity | null; readonly fault: Reason | null }> {
  try {
    const mapper = await versions.current(trigger.mapper);
    if (mapper !== null) return { mapper, fault: null };
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return { mapper: null, fault: reasonOf(thrown) };
  }
  const { name, origin } = trigger;
  if (origin !== undefined) return { mapper: null, fault: { code: "HG-TRIG-003", message: origin.unbound } };
  const message = `the trigger ${name} names the mapper ${trigger.mapper}, which does not exist`;
  return { mapper: null, fault: { code: "HG-MAP-001", message } };
}

/**
 * The bodies of `POST /api/data` need no trigger. As at the service, a reading that cannot be stored does not
 * keep the others back; unlike there, it is reported.
 */
export function standardClaim(settings: Readonly<Record<string, unknown>>): ClaimingTrigger {
  return { name: STANDARD_BODY_TRIGGER, mapper: "push-body", rows: "lenient", metadata: settings };
}
