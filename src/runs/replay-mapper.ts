/** What a replay maps with: the trigger as it is configured now, or another one, with the mapper's version of now. */
import type { BatchLimits, Binding, Run } from "../model.ts";
import { RejectedError } from "../support/errors.ts";
import type { ClaimingTrigger } from "./claims.ts";
import type { LookupStore } from "./lookups.ts";

/** What a person wants otherwise than the trigger has it. */
export interface Otherwise {
  readonly trigger?: string | undefined;
  readonly mapper?: string | undefined;
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
}

export interface BindingParts {
  readonly triggers: readonly ClaimingTrigger[];
  readonly lookups: Pick<LookupStore, "bind">;
  readonly limits: BatchLimits;
  laneOf(trigger: ClaimingTrigger, drop: string, service: string): string;
}

/** A mapper of no digest is bound when the run is mapped. `RejectedError` when there is no such trigger. */
export async function replayBinding(
  run: Run,
  otherwise: Otherwise,
  parts: BindingParts,
): Promise<{ readonly binding: Binding; readonly lane: string }> {
  const name = otherwise.trigger ?? run.binding.trigger;
  const trigger = parts.triggers.find((one) => one.name === name);
  if (trigger === undefined && otherwise.trigger !== undefined)
    throw new RejectedError("HG-CLI-002", {
      operation: "replay",
      subject: name,
      message: `there is no trigger ${name}; there are ${parts.triggers.map((one) => one.name).join(", ")}`,
      hint: "Name one of the configured triggers.",
    });
  const service = trigger?.service ?? run.binding.service;
  const lookups = await parts.lookups.bind();
  const { lookups: _bound, unpack: _unpack, rejectShare, version, ...before } = run.binding;
  const rules =
    trigger === undefined
      ? { rows: before.rows, settings: before.settings, share: rejectShare, version }
      : {
          rows: trigger.rows,
          settings: trigger.metadata,
          share: trigger.rejectShare,
          version: trigger.version,
        };
  // Settings belong to their mapper.
  const isOther =
    otherwise.mapper !== undefined && otherwise.mapper !== (trigger?.mapper ?? before.mapper.name);
  return {
    binding: {
      ...before,
      trigger: name,
      service,
      mapper: {
        name: otherwise.mapper ?? trigger?.mapper ?? before.mapper.name,
        version: "",
        digest: "",
      },
      settings: otherwise.settings ?? (isOther ? {} : rules.settings),
      rows: rules.rows,
      ...(rules.rows === "strict" ? {} : { rejectShare: rules.share }),
      limits: parts.limits,
      ...(rules.version === undefined ? {} : { version: rules.version }),
      ...(lookups.length === 0 ? {} : { lookups }),
    },
    lane: trigger === undefined ? run.lane : parts.laneOf(trigger, run.drop, service),
  };
}
