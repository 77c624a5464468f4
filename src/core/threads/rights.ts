/**
 * Rights of a thread that the permission model of Node does not know, and that code of others (mappers, scripts) must
 * not have: signals to other processes, and functions that reach other files or processes without a question to that
 * model.
 */
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import v8 from "node:v8";

const kill = process.kill.bind(process);
const { pid } = process;

/** Before code of others is loaded; `who` is its name in the words of what it may not do, such as `a mapper`. */
export async function confineThread(who: string): Promise<void> {
  const refuse = (module: object, name: string, what: string) => refuseTo(who, module, name, what);
  confineKill(who);
  // SQLite writes any file by ATTACH, VACUUM INTO and backups. An import would make its names permanent.
  const sqlite = process.getBuiltinModule("node:sqlite");
  for (const [name, value] of Object.entries(sqlite))
    if (typeof value === "function") refuse(sqlite, name, "open databases");
  // Flags such as `--redirect-code-traces-to` have the runtime write files; all threads share them.
  refuse(v8, "setFlagsFromString", "change flags of the runtime");
  refuse(os, "setPriority", "change the priority of processes");
  // Modules that are imported by name see the replaced functions only then.
  syncBuiltinESMExports();
  if ((await import("node:sqlite")).backup !== sqlite.backup) throw new Error(`${who} could open databases`);
}

function refuseTo(who: string, module: object, name: string, what: string): void {
  // Also as a class, hence no arrow function.
  const refused = function refused(): never {
    throw new Error(`${who} may not ${what}`);
  };
  Object.defineProperty(module, name, { value: refused, writable: false, configurable: false });
}

/** No signal reaches other processes: 0 and negative numbers stand for groups, the gateway's own among them. */
function confineKill(who: string): void {
  const raw = Reflect.get(process, "_kill") as (target: number, signal: number) => number;
  const confined = (target: number) => {
    if (target !== pid) throw new Error(`${who} may not send signals to other processes`);
  };
  process.kill = (target, signal) => {
    confined(target);
    return kill(target, signal);
  };
  Object.assign(process, {
    _kill: (target: number, signal: number) => {
      confined(target);
      return raw(target, signal);
    },
    _debugProcess: confined,
  });
}
