/** Copies the host keys that a person approved, on whichever node, to the files of this node's drops. */

import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { DropOptions } from "./drops/options.ts";
import { addApproved, isApprovalOf } from "./drops/sftp/approval.ts";
import type { Ledger } from "./ledger/ledger.ts";

/**
 * Returns the drops that trust a further key from now on. A file that cannot be written is reported, and hinders no
 * other work of the node.
 */
export async function copyApprovedKeys(
  drops: readonly DropOptions[],
  { ledger, log }: { readonly ledger: Pick<Ledger, "approvedKeys">; readonly log: Logger },
): Promise<ReadonlySet<string>> {
  const changed = new Set<string>();
  for (const { drop, lines } of await ledger.approvedKeys.list()) {
    const options = drops.find(({ name }) => name === drop);
    if (options?.kind !== "sftp" || options.approvedHosts === undefined || !isApprovalOf(options, lines)) continue;
    try {
      if (await addApproved(options.approvedHosts, lines)) changed.add(drop);
    } catch (thrown) {
      const facts = { drop, file: options.approvedHosts, reason: wordsOf(thrown) };
      log.warn(facts, "a host key that a person approved on another node could not be added to the file of this node");
    }
  }
  return changed;
}
