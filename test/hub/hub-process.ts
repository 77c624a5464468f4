/** Hubs as real processes over one store, for tests that kill them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { RunningHub } from "#hub/hub.ts";
import { callsOf, type HubCalls, rawOptions } from "./fixture.ts";

const RUNNER = fileURLToPath(new URL("./run-hub.ts", import.meta.url));

/** Few users: every one costs a slow hash at each start. */
const OPTIONS = {
  clients: [{ id: "gateway", secret: "gateway-secret" }],
  users: [{ username: "manager", password: "manager-password", accounts: [1], roles: ["Manager"] }],
};

/** One process at a time. `kind`: with `platform` there is a gateway inside. */
export class HubProcess {
  child: ChildProcess | null = null;
  /** Addresses of the file-transfer server of the last process. */
  transfer: RunningHub["transfer"] = null;
  #exited: Promise<unknown[]> | null = null;
  readonly #kind: "hub" | "platform";
  readonly #more: object;

  constructor(kind: "hub" | "platform" = "hub", more: object = {}) {
    this.#kind = kind;
    this.#more = more;
  }

  /** `fault`: the point at which the process ends itself as a power cut would. */
  async run(directory: string, fault?: string): Promise<HubCalls> {
    const options = JSON.stringify(rawOptions(directory, { ...OPTIONS, ...this.#more }));
    const { HEADGATE_FAULT: _, ...environment } = process.env;
    const started = spawn(process.execPath, [RUNNER, options, this.#kind], {
      env: fault === undefined ? environment : { ...environment, HEADGATE_FAULT: fault },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.child = started;
    const lines = createInterface({ input: started.stdout });
    this.#exited = once(started, "exit");
    const ended = this.#exited.then(([code, signal]) => {
      throw new Error(`the hub ended at its start (${code ?? signal})`);
    });
    const [line] = await Promise.race([once(lines, "line"), ended]);
    ended.catch(() => null);
    const { url, transfer } = JSON.parse(line) as { url: string; transfer: RunningHub["transfer"] };
    this.transfer = transfer;
    return callsOf(() => url);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.child?.kill(signal);
    await this.#exited;
  }

  /** The signal that ended the process. */
  async killed(): Promise<string | null> {
    await this.#exited;
    return this.child?.signalCode ?? null;
  }
}
