/** The senders of stored files, by the records of the hub: for commands, beside the hub or without it. */
import type { HubOptions } from "../hub/options.ts";
import { readStore } from "../hub/store/open.ts";
import { fileIdOf, senderOf } from "./hub-drop.ts";
import { accountOfName } from "./inner-config.ts";

/** By paths; a file that was removed has none. Throws as the store does when it is opened. */
export async function storedSenders(
  options: Pick<HubOptions, "store">,
  drop: string,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(paths.map(fileIdOf))];
  const found = await readStore(options.store, ({ files }) =>
    files.list(accountOfName(drop), { ids }, { offset: 0, limit: null }),
  );
  const senders = new Map(found?.rows.map((record) => [record.id, senderOf(record)]));
  return new Map(
    paths.flatMap((path) => {
      const sender = senders.get(fileIdOf(path));
      return sender === undefined ? [] : [[path, sender] as const];
    }),
  );
}
