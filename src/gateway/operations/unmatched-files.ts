/**
 * Files that no trigger claims, at drops that do not expect them (`expectUnmatched`): each needs a trigger, or to be
 * taken away. Health, notifications, metrics and `headgate quarantine` describe them in these words.
 */
import { Gauge, type Registry } from "prom-client";
import { REGISTER } from "#core/register.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Arrival } from "../model.ts";
import type { Attention, Concern } from "./attention.ts";
import type { HealthPart } from "./state-of-work.ts";

export const UNMATCHED_CODE = "HG-TRIG-001";
export const UNMATCHED_HINT = REGISTER[UNMATCHED_CODE].hint;

/** Further files of a drop are not counted. */
const COUNTED_MAX = 100_000;
/** Files of a drop that are a concern each; the others are one. */
const CONCERNS_MAX = 1_000;
const NAMED_MAX = 3;

type Files = Pick<Ledger, "files">;

export function unmatchedWords({ path, drop }: Pick<Arrival, "path" | "drop">): string {
  return `no trigger claims ${path} at ${drop}`;
}

async function countsOf({ files }: Files, drops: readonly string[]) {
  const counted = drops.map(async (drop) => ({ drop, count: (await files.unmatchedCount(drop, COUNTED_MAX)).count }));
  return (await Promise.all(counted)).filter(({ count }) => count > 0);
}

/** How many there are in all drops. */
export async function countUnmatched(ledger: Files, drops: readonly string[]): Promise<number> {
  return (await countsOf(ledger, drops)).reduce((sum, { count }) => sum + count, 0);
}

/** The gateway is ready all the same: other files are processed. */
export async function unmatchedHealth(ledger: Files, drops: readonly string[]): Promise<readonly HealthPart[]> {
  const found = await countsOf(ledger, drops);
  return await Promise.all(
    found.map(async ({ drop, count }) => {
      const names = (await ledger.files.unmatched(drop, NAMED_MAX)).map(({ path }) => path).join(", ");
      const more = count > NAMED_MAX ? `, and ${count - NAMED_MAX} more` : "";
      const what = count === 1 ? "1 file" : `${count} files`;
      const reason = `no trigger claims ${what}: ${names}${more}; \`headgate quarantine\` says why`;
      return { part: `unmatched files at ${drop}`, ready: true, reason };
    }),
  );
}

/** A file that settles again keeps its former state: it may be one that is written to now and then. */
export async function unmatchedConcerns(
  { files, settlingAges }: Files & Pick<Ledger, "settlingAges">,
  drops: readonly string[],
): Promise<Attention> {
  const concerns: Concern[] = [];
  const unknown = new Set<string>();
  for (const drop of drops) {
    for (const { id } of await settlingAges(drop, CONCERNS_MAX, 0)) unknown.add(keyOf(id));
    const listed = await files.unmatched(drop, CONCERNS_MAX);
    for (const arrival of listed) {
      const { id, path, changedAt, reason } = arrival;
      const facts = { drop, file: path, code: UNMATCHED_CODE, changedAt, reason };
      concerns.push({ key: keyOf(id), kind: "unmatched", text: unmatchedWords(arrival), facts });
    }
    if (listed.length < CONCERNS_MAX) continue;
    const more = (await files.unmatchedCount(drop, COUNTED_MAX)).count - CONCERNS_MAX;
    const facts = { drop, code: UNMATCHED_CODE, count: more };
    const text = `no trigger claims ${more} more files at ${drop}`;
    if (more > 0) concerns.push({ key: `unmatched at ${drop}`, kind: "unmatched", text, facts });
  }
  return { concerns, unknown };
}

export function keyOf(arrivalId: number): string {
  return `unmatched ${arrivalId}`;
}

export function measureUnmatched(
  registry: Registry,
  { ledger, drops }: { readonly ledger: Files; drops(): readonly { readonly drop: string }[] },
): void {
  new Gauge({
    name: "headgate_files_unmatched",
    help: "Files at the drop that no trigger claims, without those that the drop expects (`expectUnmatched`)",
    labelNames: ["drop"],
    registers: [registry],
    async collect() {
      const names = drops().map(({ drop }) => drop);
      const found = await countsOf(ledger, names);
      this.reset();
      for (const drop of names) this.set({ drop }, found.find((one) => one.drop === drop)?.count ?? 0);
    },
  });
}
