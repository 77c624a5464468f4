/**
 * The record of structure that a migration created in its services, and removed: `structure.jsonl` in its folder. The
 * line of a creation is durable before the service is called, a line with its id follows; a creation without an id is
 * searched for before anything else is done with it.
 */
import { existsSync } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock, isoInstant } from "#core/clock.ts";
import { syncDirectory } from "#core/durable.ts";
import { parsedJson } from "#core/text.ts";
import type { Creation, CreationJournal, Difference, Entity } from "../../provisioning/wanted.ts";

const RECORD = "structure.jsonl";

export interface RecordedCreation extends Creation {
  readonly nth: number;
  readonly service: string;
  readonly at: string;
  /** `begun`: its existence is unknown. `absent`: it was searched for and not found. */
  readonly state: "begun" | "created" | "absent" | "removed";
  /** It was searched for, and found: the process had ended, or the response was lost. */
  readonly found: boolean;
  /** When it was removed and by which user; null while it exists. */
  readonly removed: { readonly at: string; readonly by: string } | null;
}

export interface StructureReport {
  readonly created: readonly RecordedCreation[];
  /** As the last call found them. */
  readonly differences: readonly Difference[];
}

type Line =
  | ({
      readonly what: "begun";
      readonly nth: number;
      readonly at: string;
      readonly service: string;
    } & Creation)
  | { readonly what: "created"; readonly nth: number; readonly id: number; readonly found: boolean }
  | { readonly what: "absent"; readonly nth: number }
  | { readonly what: "removed"; readonly nth: number; readonly at: string; readonly by: string }
  | { readonly what: "differs"; readonly differences: readonly Difference[] };

export class StructureRecord {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #entries = new Map<number, RecordedCreation>();
  #differences: readonly Difference[] = [];
  #handle: FileHandle | null = null;

  private constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /** The file is created with the first creation. Only one process at a time may write. */
  static async open(folder: string, clock: Clock): Promise<StructureRecord> {
    const record = new StructureRecord(join(folder, RECORD), clock);
    if (existsSync(record.#path)) for (const line of linesOf(await readFile(record.#path, "utf8"))) record.#take(line);
    return record;
  }

  /** In the order in which they were begun. */
  get entries(): readonly RecordedCreation[] {
    return [...this.#entries.values()];
  }

  report(): StructureReport {
    const created = this.entries.filter(({ state }) => state !== "absent");
    return { created, differences: this.#differences };
  }

  /** The journal for creations in one service. */
  journal(service: string): CreationJournal {
    const own = () => this.entries.filter((one) => one.service === service);
    return {
      begin: async (creation) => {
        const nth = this.#entries.size + 1;
        await this.#write({ what: "begun", nth, at: isoInstant(this.#clock.now()), service, ...creation });
        return nth;
      },
      // Not durable at once: a creation without an id is searched for.
      created: (nth, id, found) => this.#write({ what: "created", nth, id, found }, false),
      absent: (nth) => this.#write({ what: "absent", nth }, false),
      open: () =>
        own()
          .filter(({ state }) => state === "begun")
          .map(({ nth, entity, name, id, target, body }) => ({
            nth,
            creation: { entity, name, id, target, body },
          })),
      ids: (entity: Entity) =>
        new Set(own().flatMap((one) => (one.entity === entity && one.id !== null ? [one.id] : []))),
    };
  }

  async differs(differences: readonly Difference[]): Promise<void> {
    if (JSON.stringify(differences) !== JSON.stringify(this.#differences))
      await this.#write({ what: "differs", differences });
  }

  removed(nth: number, by: string): Promise<void> {
    return this.#write({ what: "removed", nth, at: isoInstant(this.#clock.now()), by });
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    await handle?.close();
  }

  async #write(line: Line, isDurable = true): Promise<void> {
    let before = "";
    if (this.#handle === null) {
      // A crash may have cut off the line before.
      before = existsSync(this.#path) ? "\n" : "";
      this.#handle = await open(this.#path, "a");
      await syncDirectory(dirname(this.#path));
    }
    await this.#handle.write(`${before}${JSON.stringify(line)}\n`);
    if (isDurable) await this.#handle.datasync();
    this.#take(line);
  }

  #take(line: Line): void {
    if (line.what === "differs") {
      this.#differences = line.differences;
      return;
    }
    if (line.what === "begun") {
      const { what: _, ...facts } = line;
      this.#entries.set(line.nth, { ...facts, state: "begun", found: false, removed: null });
      return;
    }
    const entry = this.#entries.get(line.nth);
    if (entry === undefined) return;
    const { what, nth } = line;
    if (what === "created") this.#entries.set(nth, { ...entry, state: what, id: line.id, found: line.found });
    else if (what === "absent") this.#entries.set(nth, { ...entry, state: what });
    else this.#entries.set(nth, { ...entry, state: what, removed: { at: line.at, by: line.by } });
  }
}

/** A line that a crash cut off is ignored; its creation is searched for. */
function linesOf(text: string): readonly Line[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .flatMap((line) => (parsedJson(line) as Line | undefined) ?? []);
}
