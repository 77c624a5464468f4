/**
 * Joins the provisioners, one for each service whose triggers have a template; each has its own connections and
 * token.
 */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "#core/clock.ts";
import { ConfigError, RejectedError, wordsOf } from "#core/errors.ts";
import type { GatewayConfig } from "./config.ts";
import type { Run } from "./model.ts";
import { type Alone, createdWords, openProvisioner, type Provisioner } from "./provisioning/provisioner.ts";
import { type ProvisionContext, wantedByTemplate } from "./provisioning/template.ts";
import type { CreationJournal } from "./provisioning/wanted.ts";
import type { RunSteps } from "./runs/steps/steps.ts";

type Service = GatewayConfig["services"][number];
const WORDS_MAX = 3;

/** Dependencies that the caller of the gateway provides. */
export interface ProvisioningDependencies {
  /** The journal of everything created in a service, so that it can be undone. */
  journal(service: string): CreationJournal;
  /** Excludes other creators in the same accounts. */
  readonly alone: Alone;
}

export interface ProvisioningOptions {
  readonly clock: Clock;
  readonly alone: Alone;
  readonly journal: ProvisioningDependencies["journal"] | undefined;
}

export class Provisioners {
  readonly #config: Pick<GatewayConfig, "services" | "triggers" | "push">;
  readonly #options: ProvisioningOptions;
  readonly #made = new Map<string, { readonly options: Service; readonly provisioner: Provisioner }>();

  /** The configuration may change between calls. */
  constructor(config: Pick<GatewayConfig, "services" | "triggers" | "push">, options: ProvisioningOptions) {
    this.#config = config;
    this.#options = options;
  }

  /** See `RunSteps.provisioning`. */
  of(run: Run): ReturnType<RunSteps["provisioning"]> {
    const template = this.#config.triggers.find(({ name }) => name === run.binding.trigger)?.provision;
    if (template === undefined || template.when === "ordered") return null;
    return {
      max: template.max,
      provision: async (targets, signal) => {
        const { service } = run.binding;
        const order = {
          wanted: wantedByTemplate(template, targets, contextOf(run)),
          dryRun: false,
          journal: this.#options.journal?.(service) ?? null,
        };
        const { created, impossible, error } = await this.#provisioner(service).provision(order, signal);
        const forPerson = error instanceof ConfigError || error instanceof RejectedError;
        const faults = forPerson
          ? [...impossible, `the missing structure cannot be created: ${wordsOf(error)}`]
          : impossible;
        const more = faults.length > WORDS_MAX ? ` and ${faults.length - WORDS_MAX} more` : "";
        return {
          created: created.length === 0 ? null : createdWords(created),
          fault: faults.length === 0 ? null : `${faults.slice(-WORDS_MAX).join("; ")}${more}`,
          error: forPerson ? null : error,
        };
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#made.values()].map(({ provisioner }) => provisioner.close()));
  }

  #provisioner(name: string): Provisioner {
    const known = this.#made.get(name);
    const options = this.#config.services.find((service) => service.name === name);
    if (options === undefined)
      throw new ConfigError("HG-GUARD-008", {
        operation: "provision",
        subject: name,
        message: `the service ${name} is no longer in the configuration`,
      });
    if (known !== undefined && isDeepStrictEqual(known.options, options)) return known.provisioner;
    // A creation that is running with the former options finishes; its run reports its fault.
    known?.provisioner.close().catch(() => undefined);
    const { clock, alone } = this.#options;
    const provisioner = openProvisioner(options, this.#config.push.timeouts, clock, alone);
    this.#made.set(name, { options, provisioner });
    return provisioner;
  }
}

/** The variables of the run that a template's texts may name. */
export function contextOf({
  binding,
  drop,
  path,
}: Pick<Run, "drop" | "path"> & {
  readonly binding: Pick<Run["binding"], "trigger" | "settings">;
}): ProvisionContext {
  const settings = Object.entries(binding.settings).filter(
    ([, value]) => typeof value === "string" || typeof value === "number",
  );
  return {
    trigger: binding.trigger,
    drop,
    file: path.slice(path.lastIndexOf("/") + 1),
    ...Object.fromEntries(settings.map(([key, value]) => [`metadata.${key}`, String(value)])),
  };
}
