/** `headgate migrate` as a real process, against a hub in the process of the test. */
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { DataRow } from "#wire/index.ts";
import type { Shown } from "../cli/shown.ts";
import type { GatewayRig } from "../runs/gateway-rig.ts";

const run = promisify(execFile);
export const main = resolve(import.meta.dirname, "../../src/main.ts");

export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Otherwise a migration on a busy machine waits for everything else there, in this process for all tests of
 * the file.
 */
export const AMONG_OTHERS = ["--priority", "normal"] as const;

function withConfig(rig: GatewayRig, args: readonly string[]): readonly string[] {
  return [...args, ...(args[0] === "migrate" && !args.includes("--priority") ? AMONG_OTHERS : []), "-c", rig.config];
}

/** `headgate ARGS -c CONFIG` in the folder of the rig. */
export async function headgate(rig: GatewayRig, ...args: readonly string[]): Promise<Result> {
  return run(process.execPath, [main, ...withConfig(rig, args)], { cwd: rig.folder }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (thrown: Result) => thrown,
  );
}

/** All CSV files below `history/`, by the standard mapper. */
export function migrate(rig: GatewayRig, ...args: readonly string[]): Promise<Result> {
  return headgate(rig, "migrate", "history/**/*.csv", "-m", "standard", ...args);
}

/** `headgate ARGS -c CONFIG` in this process, which is quicker. */
export async function headgateHere(rig: GatewayRig, shown: Shown, ...args: readonly string[]): Promise<Result> {
  shown.stdout = "";
  shown.stderr = "";
  const code = await shown.headgate(withConfig(rig, args));
  return { code, stdout: shown.stdout, stderr: shown.stderr };
}

/** All CSV files below `history/`, in this process. */
export function migrateHere(rig: GatewayRig, shown: Shown, ...args: readonly string[]): Promise<Result> {
  const pattern = join(rig.folder, "history/**/*.csv");
  return headgateHere(rig, shown, "migrate", pattern, "-m", "standard", ...args);
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
