/** Gateways that share a ledger. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import type { HeadgateProcess, StartOptions } from "./processes.ts";
import type { Settings, Stage } from "./rig.ts";

/** One of the gateways: its own name, spool and operations, and the ledger and the drop of all. */
export class Node {
  readonly name: string;
  readonly #stage: Stage;
  readonly #lives: HeadgateProcess[] = [];

  constructor(stage: Stage, name: string) {
    this.#stage = stage;
    this.name = name;
  }

  get said(): readonly string[] {
    return this.#lives.map(({ stderr }) => stderr);
  }

  get process(): HeadgateProcess {
    const living = this.#lives.at(-1);
    if (living === undefined) throw new Error(`${this.name} was not started`);
    return living;
  }

  async start(options: StartOptions = {}): Promise<void> {
    const settings = this.#stage.settings();
    const file = join(this.#stage.folder, `${this.name}.yaml`);
    const ledger = { ...(settings["ledger"] as Settings), node: this.name };
    const spool = { path: `./state/spool-${this.name}` };
    await writeFile(file, stringify({ ...settings, ledger, spool }));
    const life = this.#stage.rig.start(["gateway", "-c", file], options);
    this.#lives.push(life);
    life.said("stderr", /"operations":"([^"]+)"[^\n]*gateway started/).then(
      ([, url]) => {
        this.#stage.lane.gateway = url ?? null;
      },
      () => undefined, // It was killed before.
    );
    await life.said("stderr", /ledger|Server listening/);
  }

  end(signal: NodeJS.Signals) {
    return this.process.end(signal);
  }
}
