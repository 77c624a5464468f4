/** Events about the states of stored files. */
import type { FileState } from "#wire/index.ts";
import type { NewEvent } from "./events.ts";

export interface StatedFile {
  readonly id: number;
  readonly fileName: string;
  readonly siteId: number | null;
  readonly size: number;
  readonly via: string;
}

interface FileStateChange {
  readonly state: FileState;
  readonly reason: string | null;
  readonly atMs: number;
  readonly run?: string | null | undefined;
  readonly triggerId?: number | null | undefined;
  /** Whether a person should see it, where the state does not say. */
  readonly isFailure?: boolean;
}

const FAILURES: readonly FileState[] = ["quarantined", "discarded", "partly-discarded", "unclaimed"];

/** None of `processing`, in which a file is for a moment. */
export function fileStateEvents(accountId: number, file: StatedFile, changed: FileStateChange): readonly NewEvent[] {
  const { state, reason, atMs, run = null, triggerId = null, isFailure = FAILURES.includes(state) } = changed;
  if (state === "processing") return [];
  const { id, fileName, siteId, size, via } = file;
  return [
    {
      ...{
        accountId,
        type: "file.state",
        subject: { kind: "file", id, name: fileName },
        atMs,
        state,
        isFailure,
        siteId,
      },
      facts: { reason, size, via, triggerId, run },
    },
  ];
}
