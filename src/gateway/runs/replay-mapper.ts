/**
 * Binds a replay: to the trigger as it is configured now, or to another one, with the current version of the
 * mapper.
 */

import { RejectedError } from "#core/errors.ts";
import type { BatchLimits, Binding, Run } from "../model.ts";
import type { LookupStore } from "./lookups.ts";

/** Settings of the replay command that replace those of the trigger. */
export interface ReplayOverrides {
  readonly trigger?: string | undefined;
  readonly mapper?: string | undefined;
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
  readonly rows?: Binding["rows"] | undefined;
}

export interface BindingParts {
  readonly triggers: readonly ClaimingTrigger[];
  readonly lookups: Pick<LookupStore, "bind">;
  /** The gateway is inside a hub, which knows the zones of its sources. */
  readonly knowsZones: boolean;
  readonly limits: BatchLimits;
  laneOf(trigger: ClaimingTrigger, drop: string, service: string): string;
}

/** `RejectedError` for a run that brings no readings of its own. */
export function assertMapped({ id, path, binding }: Run): void {
  const facts = { operation: "replay", subject: id };
  if (binding.unpack !== undefined)
    throw new RejectedError("HG-RUN-011", {
      ...facts,
      message: `run ${id} opened the container ${path}: its entries are replayed, each by its own run`,
      hint:
        `\`headgate trace ${path}\` shows the runs of the entries; ` +
        "`headgate forget` has the whole container opened again.",
    });
  if (binding.structure === true)
    throw new RejectedError("HG-RUN-011", {
      ...facts,
      message: `run ${id} applied the master data of ${path}, which brings no readings`,
      hint:
        "`POST /storage/{id}/dryRun` reports what the file would change, and `POST /storage/{id}/process` applies " +
        "it again.",
    });
}

/** A mapper of no digest is bound when the run is mapped. `RejectedError` when there is no such trigger. */
export async function replayBinding(
  run: Run,
  overrides: ReplayOverrides,
  parts: BindingParts,
): Promise<{ readonly binding: Binding; readonly lane: string }> {
  const name = overrides.trigger ?? run.binding.trigger;
  const trigger = parts.triggers.find((one) => one.name === name);
  if (trigger === undefined && overrides.trigger !== undefined)
    throw new RejectedError("HG-CLI-002", {
      operation: "replay",
      subject: name,
      message: `there is no trigger ${name}; there are ${parts.triggers.map((one) => one.name).join(", ")}`,
      hint: "Name one of the configured triggers.",
    });
  const service = trigger?.service ?? run.binding.service;
  const lookups = await parts.lookups.bind();
  const { lookups: _bound, zones: _zones, unpack: _unpack, rejectShare, version, empty, ...before } = run.binding;
  const rules =
    trigger === undefined
      ? { rows: before.rows, settings: before.settings, share: rejectShare, version, empty }
      : {
          rows: trigger.rows,
          settings: trigger.metadata,
          share: trigger.rejectShare,
          version: trigger.version,
          empty: trigger.empty,
        };
  const rows = overrides.rows ?? rules.rows;
  // Settings belong to their mapper.
  const isOther = overrides.mapper !== undefined && overrides.mapper !== (trigger?.mapper ?? before.mapper.name);
  return {
    binding: {
      ...before,
      trigger: name,
      service,
      mapper: {
        name: overrides.mapper ?? trigger?.mapper ?? before.mapper.name,
        version: "",
        digest: "",
      },
      settings: overrides.settings ?? (isOther ? {} : rules.settings),
      rows,
      ...(rows === "strict" ? {} : { rejectShare: rules.share }),
      ...(rules.empty === undefined ? {} : { empty: rules.empty }),
      limits: parts.limits,
      ...(rules.version === undefined ? {} : { version: rules.version }),
      ...(lookups.length === 0 ? {} : { lookups }),
      // The mapping asks for them as they are then.
      ...(parts.knowsZones ? { zones: null } : {}),
    },
    lane: trigger === undefined ? run.lane : parts.laneOf(trigger, run.drop, service),
  };
}

/** The settings of a trigger that a claim needs; the configuration's triggers have this shape. */
export interface ClaimingTrigger {
  readonly name: string;
  readonly mapper: string;
  readonly service?: string | undefined;
  readonly rows: Binding["rows"];
  readonly rejectShare?: number | undefined;
  readonly empty?: Binding["empty"];
  readonly lane?: string | undefined;
  readonly version?: Binding["version"];
  readonly operationPrefix?: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Present for a trigger that comes from a service: `unbound` is the reason in case there is no such mapper. */
  readonly origin?: { readonly unbound: string } | undefined;
  /** Its files are master data, which a gateway inside a hub applies. */
  readonly structure?: true | undefined;
}
