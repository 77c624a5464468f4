/** Copies the host keys that a person approved, on whichever node, to the files of this node's drops. */
import type { DropOptions } from "../drops/options.ts";
import { addApproved } from "../drops/sftp/approval.ts";
import type { Ledger } from "../ledger/ledger.ts";

/** Returns the drops that trust a further key from now on. */
export async function copyApprovedKeys(
  drops: readonly DropOptions[],
  ledger: Pick<Ledger, "approvedKeys">,
): Promise<ReadonlySet<string>> {
  const changed = new Set<string>();
  for (const { drop, lines } of await ledger.approvedKeys.list()) {
    const options = drops.find(({ name }) => name === drop);
    if (options?.kind !== "sftp" || options.approvedHosts === undefined) continue;
    if (await addApproved(options.approvedHosts, lines)) changed.add(drop);
  }
  return changed;
}
