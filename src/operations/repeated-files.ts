/**
 * Files that another gateway with a ledger of its own delivers too, or that were delivered before the ledger was lost.
 */
import type { Ledger, RepeatedFiles } from "../ledger/ledger.ts";
import { type Clock, isoInstant } from "../support/clock.ts";
import { counted } from "../support/grouped-number.ts";
import type { Concern } from "./attention.ts";
import type { HealthPart } from "./state-of-work.ts";

const DAY = { hours: 24 };

/** Returns the repeated files of the last day, by drop. */
export function repeatedFiles(ledger: Pick<Ledger, "repeatedSince">, clock: Clock): Promise<readonly RepeatedFiles[]> {
  return ledger.repeatedSince(isoInstant(clock.now().subtract(DAY)));
}

export function repeatedConcerns(repeated: readonly RepeatedFiles[]): readonly Concern[] {
  return repeated.map((files) => {
    const { drop, operationId, latestAt } = files;
    const facts = { drop, files: files.files, operation: operationId, latestAt };
    return { key: `repeated ${drop}`, kind: "drop", text: `drop ${drop}: ${repeatedWords(files)}`, facts };
  });
}

export function repeatedHealth(repeated: readonly RepeatedFiles[]): readonly HealthPart[] {
  return repeated.map((files) => ({ part: `drop ${files.drop}`, ready: true, reason: repeatedWords(files) }));
}

export function repeatedWords({ files, operationId }: RepeatedFiles): string {
  const by = operationId === "" ? "" : ` (${operationId})`;
  return (
    `${counted(files, "file")} of the last day had already been delivered by operations that this ledger does not ` +
    `have${by}: it was lost or restored, or another gateway takes the files of this drop`
  );
}
