/** Hubs that are killed at random while they calculate. */
import { setTimeout as sleep } from "node:timers/promises";
import type { HubCalls } from "../hub/fixture.ts";
import type { HubProcess } from "../hub/hub-process.ts";
import { idle } from "./calculation-chains.ts";

/** Fault points that calculations pass, and how often at most before they kill. */
export const CALCULATION_POINTS = [
  "hub.calculation.claimed",
  "hub.calculation.computed",
  "hub.calculation.accepted",
  "hub.calculation.sent",
  "hub.calculation.calculated",
  "hub.ingest.before",
  "hub.ingest.after",
] as const;
const PASSED_MAX = 12;

export interface Life {
  readonly directory: string;
  readonly chance: () => number;
  /** Fault points, of which one may end the life; those of calculations when absent. */
  readonly points?: readonly string[];
  /** Of a life that ends at any instant, from when the hub answers. */
  readonly lifeMaxMs: number;
  /** Done while the hub lives; the kill may interrupt it. */
  readonly meanwhile: (hub: HubCalls) => Promise<void>;
}

/** Returns how it ended, for the words of a test that fails. */
export async function liveAndDie(
  hubProcess: HubProcess,
  { directory, chance, points = CALCULATION_POINTS, lifeMaxMs, meanwhile }: Life,
): Promise<string> {
  const [how, one, other] = [chance(), chance(), chance()];
  const point = points[Math.trunc(one * points.length)] ?? points[0];
  const fault = how < 0.6 ? `${point}#${1 + Math.trunc(other * PASSED_MAX)}` : undefined;
  const hub = await hubProcess.run(directory, fault).catch(() => null);
  if (hub === null) return `killed at its start, at ${fault}`;
  const doing = meanwhile(hub).catch(() => null);
  if (fault === undefined) await sleep(other * lifeMaxMs);
  else await Promise.race([hubProcess.killed(), doing.then(() => idle(hub)).catch(() => null)]);
  await hubProcess.end("SIGKILL");
  await doing;
  return fault === undefined ? "killed at an instant" : `killed at ${fault}, or idle before`;
}
