/** Finds the targets that a person may mean by the number or the name of a meter alone. */

import { type SharedQuery, shareQuery } from "#core/shared-query.ts";
import { SOURCE_IDENTIFIERS, type TargetTexts, targetWords } from "#wire/target.ts";
import type { TargetKey } from "../ledger/ledger.ts";
import { readFacts } from "../spool/target-index.ts";
import type { ContentParts } from "./file-content.ts";

type Selector = Pick<TargetTexts, "mappingConfig" | "variableTypeId">;

/** Runs whose targets are read for their selectors, and selectors that are tried. */
const RUNS_MAX = 50;
const SELECTORS_MAX = 100;
const TARGETS_PER_RUN = 1_000;
/** Milliseconds; the selectors of a site hardly ever change. */
const KNOWN_MS = 60_000;

const NUMBERED: ReadonlySet<string> = new Set(["sourceId"]);

/** A target names its source and a selector, such as a register: those of the newest runs are tried with the meter. */
export class Meters {
  readonly #selectors: SharedQuery<readonly Selector[]>;

  constructor(parts: Pick<ContentParts, "ledger" | "spool">) {
    this.#selectors = shareQuery(() => recentSelectors(parts));
  }

  async targets(meter: string): Promise<readonly TargetKey[]> {
    const number = /^\d{1,15}$/.test(meter) ? Number(meter) : null;
    const keys: TargetKey[] =
      number === null ? [] : [{ kind: "variableId", target: targetWords({ variableId: number }) }];
    for (const selector of await this.#selectors.within(KNOWN_MS))
      for (const kind of SOURCE_IDENTIFIERS) {
        if (NUMBERED.has(kind) && number === null) continue;
        keys.push({ kind, target: targetWords({ [kind]: NUMBERED.has(kind) ? (number ?? 0) : meter, ...selector }) });
      }
    return keys;
  }
}

async function recentSelectors({
  ledger,
  spool,
}: Pick<ContentParts, "ledger" | "spool">): Promise<readonly Selector[]> {
  const found = new Map<string, Selector>();
  for (const { id } of await ledger.recentRuns(RUNS_MAX)) {
    const { about } = spool.filesOf(id);
    if (about === null) continue;
    await readFacts(about, TARGETS_PER_RUN, async (part) => {
      for (const { target } of part) {
        const { mappingConfig, variableTypeId } = target;
        const selector = mappingConfig === undefined ? { variableTypeId } : { mappingConfig };
        if (found.size < SELECTORS_MAX) found.set(JSON.stringify(selector), selector);
      }
    });
  }
  found.delete("{}");
  return [...found.values()];
}
