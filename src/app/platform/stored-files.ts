/** The records of stored files for commands, beside the hub or without it. */
import type { HubOptions } from "#hub/options.ts";
import { readStore } from "#hub/store/open.ts";
import type { FileRecord } from "#hub/store/stored-files.ts";
import { fileIdOf, senderOf } from "./hub-drop.ts";
import { accountOfName } from "./inner-config.ts";

type Options = Pick<HubOptions, "store">;

/** The senders by paths; a file that was removed has none. Throws as the store does when it is opened. */
export async function storedSenders(
  options: Options,
  drop: string,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const senders = new Map((await recordsAt(options, drop, paths)).map((record) => [record.id, senderOf(record)]));
  return new Map(
    paths.flatMap((path) => {
      const sender = senders.get(fileIdOf(path));
      return sender === undefined ? [] : [[path, sender] as const];
    }),
  );
}

/** Whether the file, or the one that it is an entry of, was removed. Throws as the store does when it is opened. */
export async function isRemovedFile(
  options: Options,
  { drop, path }: { readonly drop: string; readonly path: string },
): Promise<boolean> {
  return (await recordsAt(options, drop, [path])).length === 0;
}

async function recordsAt({ store }: Options, drop: string, paths: readonly string[]): Promise<readonly FileRecord[]> {
  const ids = [...new Set(paths.map(fileIdOf))];
  const page = { offset: 0, limit: null };
  return (await readStore(store, ({ files }) => files.list(accountOfName(drop), { ids }, page)))?.rows ?? [];
}
