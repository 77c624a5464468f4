/** Implements the contract of the ledger over a store, except opening and closing. */
import type { Ledger, PollRecord } from "../ledger.ts";
import { brokenInvariant } from "../transitions.ts";
import { acceptanceMethods } from "./acceptance.ts";
import { advanceMethods } from "./advances.ts";
import { arrivalMethods } from "./arrivals.ts";
import { batchMethods } from "./batches.ts";
import { checkingMethods } from "./consistency.ts";
import { containerMethods } from "./containers.ts";
import { eventMethods } from "./events.ts";
import { fileList } from "./file-list.ts";
import { finishedFiles } from "./finished-files.ts";
import { forgettingMethods } from "./forgotten.ts";
import { historyMethods } from "./history.ts";
import { laneHeads } from "./lane-heads.ts";
import { orderMethods } from "./lane-order.ts";
import { openingMethods } from "./new-run.ts";
import { operatorMethods } from "./operator.ts";
import { outcomeMethods } from "./outcomes.ts";
import { LedgerPoll } from "./polls/poll.ts";
import { pruningMethods } from "./retention.ts";
import { runMethods } from "./runs.ts";
import { approvedKeys, triggerLists } from "./shared-lists.ts";
import type { Store } from "./store.ts";
import { tallyMethods } from "./tally.ts";
import { traceMethods } from "./trace.ts";

export function ledgerMethods(store: Store): Omit<Ledger, "close" | "fleet" | "shared"> {
  const polls = new Set<string>();
  return {
    beginPoll: (drop, archives) => beginPoll(store, polls, drop, archives ?? []),
    ...arrivalMethods(store),
    ...pruningMethods(store),
    ...openingMethods(store),
    ...runMethods(store),
    ...containerMethods(store),
    ...advanceMethods(store),
    ...batchMethods(store),
    ...acceptanceMethods(store),
    ...orderMethods(store),
    ...outcomeMethods(store),
    ...eventMethods(store),
    ...traceMethods(store),
    ...tallyMethods(store),
    ...historyMethods(store),
    ...operatorMethods(store),
    ...forgettingMethods(store),
    ...checkingMethods(store),
    approvedKeys: approvedKeys(store),
    finishedFiles: finishedFiles(store),
    files: fileList(store),
    laneHeads: laneHeads(store),
    triggerLists: triggerLists(store),
  };
}

async function beginPoll(
  store: Store,
  polls: Set<string>,
  drop: string,
  archives: readonly string[],
): Promise<PollRecord> {
  if (polls.has(drop)) throw brokenInvariant("begin poll", drop, `a poll of drop ${drop} is in progress already`);
  polls.add(drop);
  try {
    const known = await finishedFiles(store).archives(drop, archives);
    return await LedgerPoll.begin(store, drop, known, () => polls.delete(drop));
  } catch (thrown) {
    polls.delete(drop);
    throw thrown;
  }
}
