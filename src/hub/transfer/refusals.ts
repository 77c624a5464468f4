/** Devices show their answers to no person, so refusals for want of space are in the log, too. */
import type { Logger } from "#core/log.ts";
import { REFUSED } from "../files/intake.ts";
import { TreeFault } from "./file-tree.ts";
import type { Sender } from "./take.ts";

interface Place {
  readonly accountId: number;
  readonly log: Logger;
}

export async function logRefusal<T>(place: Place, path: string, sender: Sender, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const { accountId: account, log } = place;
    const { username: user, via } = sender;
    if (thrown instanceof TreeFault && thrown.reason === "full")
      log.warn({ account, user, via, name: path.slice(1), reason: thrown.message }, REFUSED);
    throw thrown;
  }
}
