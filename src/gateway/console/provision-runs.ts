/** Creates the structure that held runs need, or shows what would be created, by the templates of their triggers. */

import { systemClock } from "#core/clock.ts";
import { RejectedError } from "#core/errors.ts";
import type { GatewayConfig } from "../config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Run, TargetFacts } from "../model.ts";
import { contextOf } from "../provisioners.ts";
import { openProvisioner, type Provisioned, type Provisioner } from "../provisioning/provisioner.ts";
import { wantedByTemplate } from "../provisioning/template.ts";
import type { Spool } from "../spool/spool.ts";

export interface RunProvisioned extends Provisioned {
  readonly run: string;
  readonly file: string;
}

export interface ProvisionParts {
  readonly config: GatewayConfig;
  readonly spool: Pick<Spool, "facts">;
  readonly ledger: Pick<Ledger, "fleet">;
}

const TARGETS_PER_PART = 10_000;

/** `RejectedError` for a run that is not held. */
export function assertHeld({ id, path, state }: Run): void {
  if (state === "held") return;
  throw new RejectedError("HG-RUN-011", {
    operation: "provision",
    subject: id,
    message: `run ${id} of ${path} is ${state}, not held`,
  });
}

export class RunProvisioner {
  readonly #parts: ProvisionParts;
  /** By the names of the services. */
  readonly #provisioners = new Map<string, Provisioner>();

  constructor(parts: ProvisionParts) {
    this.#parts = parts;
  }

  async provision(run: Run, dryRun: boolean, signal: AbortSignal): Promise<RunProvisioned> {
    const { config, spool } = this.#parts;
    const about = { run: run.id, file: run.path };
    const nothing = { created: [], differences: [], error: null };
    const template = config.triggers.find(({ name }) => name === run.binding.trigger)?.provision;
    const provisioner = this.#provisionerOf(run.binding.service);
    if (template === undefined || provisioner === null) {
      const what =
        provisioner === null
          ? `service ${run.binding.service}`
          : `provision template of the trigger ${run.binding.trigger}`;
      return { ...about, ...nothing, impossible: [`there is no ${what} in the configuration`] };
    }
    const targets: TargetFacts[] = [];
    const isWhole = await spool.facts(run.id, TARGETS_PER_PART, async (part) => {
      targets.push(...part);
    });
    if (!isWhole)
      return { ...about, ...nothing, impossible: ["the spool has lost its batches; the gateway makes them again"] };
    const wanted = wantedByTemplate(template, targets, contextOf(run));
    return { ...about, ...(await provisioner.provision({ wanted, dryRun, journal: null }, signal)) };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#provisioners.values()].map((one) => one.close()));
  }

  /** Null for a service that is not in the configuration. */
  #provisionerOf(name: string): Provisioner | null {
    const { config, ledger } = this.#parts;
    const known = this.#provisioners.get(name);
    if (known !== undefined) return known;
    const service = config.services.find((one) => one.name === name);
    if (service === undefined) return null;
    const provisioner = openProvisioner(service, config.push.timeouts, systemClock, ledger.fleet.alone);
    this.#provisioners.set(name, provisioner);
    return provisioner;
  }
}
