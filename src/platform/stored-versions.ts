/** Which stored files there are, for the gateway inside a hub. */
import type { InnerGateway } from "../gateway.ts";
import type { FileStore } from "../hub/store/store.ts";
import { entryOf, fileIdOf } from "./hub-drop.ts";

/** `accountOf`: the account of a drop. */
export function storedVersions(
  files: Pick<FileStore, "list">,
  accountOf: (drop: string) => number | undefined,
): InnerGateway["storedVersions"] {
  return async (drop, paths) => {
    const accountId = accountOf(drop);
    if (accountId === undefined) return null;
    const ids = [...new Set(paths.map(fileIdOf))];
    const { rows } = await files.list(accountId, { ids }, { offset: 0, limit: null });
    const versions = new Map(rows.map((record) => [record.id, entryOf(record).mtime]));
    return new Map(paths.map((path) => [path, versions.get(fileIdOf(path))] as const).filter(isKnown));
  };
}

function isKnown(one: readonly [string, string | undefined]): one is readonly [string, string] {
  return one[1] !== undefined;
}
