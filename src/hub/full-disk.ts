/**
 * A full disk under the hub: nothing can be stored until a person makes space. The hub keeps answering what it can,
 * refuses the rest with 507, says so once in its log, and is not ok at `/health` meanwhile.
 */
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, isoInstant } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { isFullDisk } from "#core/sql/trouble.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubOptions } from "./options.ts";

/** Space from which a disk counts as free again. */
const ENOUGH_BYTES = 4 * 1024 * 1024;
const RETRY_AFTER_SEC = 30;

/** Strangers may read it: it names nothing of the hub's surroundings. */
export interface FullDiskState {
  readonly since: string;
  readonly reason: string;
}

export interface FullDisk {
  /** The hub's log: errors of a full disk are one line, however many parts meet it and however often. */
  readonly log: Logger;
  /** The answer to a request that met a full disk; null for any other error. */
  problemOf(thrown: unknown): HttpProblem | null;
  /** Something was stored. */
  hasStored(): void;
  /** Null: there is space, or none is known to lack. */
  state(): Promise<FullDiskState | null>;
}

export function watchFullDisk({ store, files }: HubOptions, plain: Logger, clock: Clock): FullDisk {
  let state: FullDiskState | null = null;
  const folders = [
    ...(store.kind === "sqlite" ? [dirname(store.path)] : []),
    ...(files?.kind === "folder" && files.path !== undefined ? [dirname(files.path)] : []),
  ];

  function report(thrown: unknown): void {
    if (state !== null) return;
    const since = isoInstant(clock.now());
    state = { since, reason: "the disk of the hub is full: nothing is stored until there is space" };
    plain.error(
      { cause: wordsOf(thrown) },
      "the disk of the hub is full: pushes and uploads are refused until there is space, and what was accepted waits",
    );
  }

  function ended(): void {
    if (state !== null) plain.info({ since: state.since }, "the hub has space again, and stores what it gets");
    state = null;
  }

  const log: Logger = Object.create(plain);
  for (const level of ["warn", "error"] as const)
    log[level] = (...line: unknown[]) => {
      const [facts] = line;
      const { err, fullDisk } = Object(facts) as { readonly err?: unknown; readonly fullDisk?: unknown };
      if (isFullDisk(err)) report(err);
      else if (typeof fullDisk === "string") report(fullDisk);
      else Reflect.apply(plain[level], plain, line);
    };

  return {
    log,
    problemOf(thrown) {
      if (!isFullDisk(thrown)) return null;
      report(thrown);
      const detail = "the hub has no space to store this; send it again later";
      return new HttpProblem(507, "storage-full", detail, undefined, RETRY_AFTER_SEC);
    },
    hasStored: ended,
    async state() {
      if (state !== null && folders.length > 0 && (await haveSpace(folders))) ended();
      return state;
    },
  };
}

async function haveSpace(folders: readonly string[]): Promise<boolean> {
  const free = await Promise.all(folders.map((folder) => statfs(folder).then(({ bavail, bsize }) => bavail * bsize)));
  return free.every((bytes) => bytes >= ENOUGH_BYTES);
}
