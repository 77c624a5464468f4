/** `headgate migrate` as a real process, against a hub in the process of the test. */
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import type { DataRow } from "../../src/wire/index.ts";
import type { GatewayRig } from "../runs/gateway-rig.ts";

const run = promisify(execFile);
export const main = resolve(import.meta.dirname, "../../src/main.ts");

export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** `headgate ARGS -c CONFIG` in the folder of the rig. */
export async function headgate(rig: GatewayRig, ...args: readonly string[]): Promise<Result> {
  return run(process.execPath, [main, ...args, "-c", rig.config], { cwd: rig.folder }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (thrown: Result) => thrown,
  );
}

/** All CSV files below `history/`, by the standard mapper. */
export function migrate(rig: GatewayRig, ...args: readonly string[]): Promise<Result> {
  return headgate(rig, "migrate", "history/**/*.csv", "-m", "standard", ...args);
}

const never = new AbortController().signal;

/** Every version of every point, in the order of dates and versions. */
export function versionsOf(rig: GatewayRig, variableId: number, tag?: string): Promise<readonly DataRow[]> {
  return rig.client.postData(
    {
      VariableIds: [variableId],
      DisplayLevel: "ValueVariableDate",
      TimeZoneId: "UTC",
      ...(tag === undefined ? { AllVersions: true } : { VersionTag: tag }),
    },
    never,
  );
}
