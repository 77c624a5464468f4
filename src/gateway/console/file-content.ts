/** The content of a file as it came: from the spool, or from its drop while the same version is there. */
import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { RejectedError } from "#core/errors.ts";
import { fetchFile } from "../drops/drop.ts";
import type { Arrival } from "../model.ts";
import { unknownSubject } from "../operations/problems.ts";
import type { QueryParts } from "./parts.ts";

export type ContentParts = Pick<QueryParts, "ledger" | "spool" | "drops">;

/** Bytes of a file that is copied from its drop, or whose whole content is needed to show a part of it. */
const COPY_MAX = 100_000_000;

export async function mustFindFile(id: number, { ledger }: Pick<ContentParts, "ledger">): Promise<Arrival> {
  const arrival = await ledger.arrival(id);
  if (arrival !== null) return arrival;
  throw unknownSubject({
    operation: "find file",
    subject: String(id),
    message: `there is no file ${id} in the ledger`,
  });
}

/** The newest run of the file whose input the spool has; null when it has none. */
export async function runWithInput(arrivalId: number, { ledger, spool }: ContentParts): Promise<string | null> {
  for (let run = await ledger.runOf(arrivalId); run !== null; ) {
    if (await spool.holdsInput(run.id)) return run.id;
    run = run.replay === null ? null : await ledger.run(run.replay.of);
  }
  return null;
}

export class FileContent {
  readonly #arrival: Arrival;
  readonly #run: string | null;
  readonly #parts: ContentParts;
  readonly #signal: AbortSignal;
  #folder: string | null = null;
  #copy: Promise<string> | null = null;

  private constructor(arrival: Arrival, run: string | null, parts: ContentParts, signal: AbortSignal) {
    this.#arrival = arrival;
    this.#run = run;
    this.#parts = parts;
    this.#signal = signal;
  }

  static async open(arrival: Arrival, parts: ContentParts, signal: AbortSignal): Promise<FileContent> {
    return new FileContent(arrival, await runWithInput(arrival.id, parts), parts, signal);
  }

  /** The bytes, as often as they are needed. `RejectedError` when they are no longer available. */
  async stream(): Promise<Readable> {
    const kept = this.#run === null ? null : await this.#parts.spool.openInput(this.#run);
    return kept ?? createReadStream(await this.path());
  }

  /** A copy of the file. */
  path(): Promise<string> {
    this.#copy ??= this.#copied();
    return this.#copy;
  }

  /** Removes the copy. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#copy?.catch(() => undefined);
    if (this.#folder !== null) await rm(this.#folder, { recursive: true, force: true });
  }

  async #copied(): Promise<string> {
    const { drop: name, path, size, goneAt, parentId } = this.#arrival;
    const facts = { operation: "read file", subject: path };
    if (size > COPY_MAX)
      throw new RejectedError("HG-OPS-004", {
        ...facts,
        message: `the file has ${size} bytes; only files up to ${COPY_MAX} bytes are shown this way`,
        hint: "Download it, as long as the spool keeps it.",
      });
    this.#folder = await mkdtemp(join(tmpdir(), "headgate-"));
    const copy = join(this.#folder, "input");
    if (this.#run !== null && (await this.#parts.spool.copyInput(this.#run, copy))) return copy;
    const drop = goneAt === null && parentId === null ? this.#parts.drops.entry(name)?.drop : undefined;
    if (drop === undefined)
      throw unknownSubject({
        ...facts,
        message: "the content of this file is no longer available: the spool does not keep it, and it left its drop",
        hint: "`spool.keepInputs` says how long inputs are kept.",
      });
    await fetchFile(drop, this.#arrival, copy, this.#signal);
    return copy;
  }
}
