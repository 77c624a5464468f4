/** Binds a run to another version of its mapper, or to the zones of the sources, as long as it has no batches. */
import type { MapResult } from "#mapping/contract.ts";
import type { MapperIdentity, Run } from "../../model.ts";
import { NEXT, REST, type RunSteps, type StepResult } from "./steps.ts";

/** The mapper is not the one that the run is bound to. */
const MAPPER_CHANGED = "HG-MAP-002";
/** Dates of the file need the zones of the sources, to which the run is not bound. */
const ZONES_NEEDED = "HG-MAP-019";

/** `acme 1.2.0 (0123456789ab)` */
export function mapperText({ name, version, digest }: MapperIdentity): string {
  return `${name} ${version} (${digest.slice(0, 12)})`;
}

/** A replay takes the version of the mapper that exists when its turn comes. */
export async function bindMapper(run: Run, steps: RunSteps): Promise<StepResult> {
  if (await rebind(run, steps)) return NEXT;
  const message = `the mapper ${run.binding.mapper.name} does not exist, or cannot be loaded`;
  const reason = { code: "HG-MAP-001", message };
  await steps.ledger.advanceRun(run.id, "fetched", "quarantined", { reason, detail: message });
  return REST;
}

/** Until a run has batches, nothing depends on which version of the mapper it was claimed for. */
async function rebind(run: Run, steps: RunSteps): Promise<boolean> {
  const mapper = await steps.currentMapper(run.binding.mapper.name);
  if (mapper === null || mapper.digest === run.binding.mapper.digest) return false;
  const before = run.binding.mapper;
  await steps.ledger.noteRun(run.id, {
    bound: { mapper },
    event: "run.rebound",
    detail:
      before.digest === ""
        ? `to the mapper ${mapperText(mapper)}`
        : `the mapper is ${mapperText(mapper)} now; it was ${mapperText(before)} when the file was claimed`,
  });
  return true;
}

/** Whether the run is bound otherwise now, and is to be mapped again. */
export async function rebindFor(result: MapResult, run: Run, steps: RunSteps): Promise<boolean> {
  if (result.status !== "failed") return false;
  if (result.reason.code === MAPPER_CHANGED) return await rebind(run, steps);
  return result.reason.code === ZONES_NEEDED && (await bindZones(run, steps));
}

async function bindZones({ id, binding }: Run, { zones, ledger }: RunSteps): Promise<boolean> {
  if (zones === null || binding.zones !== null) return false;
  const digest = await zones.bind(binding.trigger, binding.service);
  await ledger.noteRun(id, {
    bound: { zones: digest },
    event: "run.rebound",
    detail: `to the zones of the sources (${digest.slice(0, 12)}), since dates of the file have none`,
  });
  return true;
}
