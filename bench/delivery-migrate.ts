/** `headgate migrate` on the files of the delivery bench, watched from outside as the gateway is. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type GatewayAnswer, readLedger, watchProcesses, writeConfig } from "./delivery-gateway.ts";

export interface MigrateWork {
  /** What the migration writes comes into `state` below it. */
  readonly folder: string;
  /** Address of the service. */
  readonly url: string;
  /** Folder of the files. */
  readonly files: string;
}

export async function runMigrate({ folder, url, files }: MigrateWork): Promise<GatewayAnswer> {
  mkdirSync(join(folder, "state"));
  const config = writeConfig({ folder, url });
  const program = join(import.meta.dirname, "../src/headgate.js");
  // The trigger of the configuration takes them, as it does for the gateway.
  const args = [program, "migrate", join(files, "*.csv"), "-c", config, "--json"];
  const spawnedMs = Date.now();
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  const watched = watchProcesses(child, () => undefined);
  const [said] = await Promise.all([text(child.stderr), once(child, "close")]);
  const endedMs = Date.now();
  clearInterval(watched.timer);
  if (child.exitCode !== 0) throw new Error(`the migration ended with ${child.exitCode}: ${said}`);
  const own = folderOf(join(folder, "state/spool"));
  const { lastMs, ...told } = readLedger(join(own, "ledger.sqlite"));
  const startedMs = startOf(join(own, "migration.log"));
  return {
    ...{ spawnedMs, startedMs, endedMs },
    wall: (lastMs - startedMs) / 1e3,
    untilEnd: (endedMs - startedMs) / 1e3,
    ...watched.seen,
    ...told,
  };
}

/** Of the only migration. */
function folderOf(spool: string): string {
  const found = readdirSync(spool, { recursive: true, encoding: "utf8" }).find((path) =>
    existsSync(join(spool, path, "migration.json")),
  );
  if (found === undefined) throw new Error(`there is no migration in ${spool}`);
  return join(spool, found);
}

/** When its gateway started, from which on a gateway's time is counted too; milliseconds of the epoch. */
function startOf(log: string): number {
  const line = readFileSync(log, "utf8")
    .split("\n")
    .find((one) => one.includes('"gateway started"'));
  if (line === undefined) throw new Error(`the migration did not start: ${log}`);
  return Date.parse((JSON.parse(line) as { time: string }).time);
}
