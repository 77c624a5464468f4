/** Which stored files there are, for the gateway inside a hub. */

import { settleEach } from "#core/settled.ts";
import type { InnerGateway } from "#gateway/gateway.ts";
import type { FileStore } from "#hub/store/store.ts";
import { entryOf, fileIdOf } from "./hub-drop.ts";

/** `accountOf`: the account of a drop. Each account is asked once for all its files. */
export function storedVersions(
  files: Pick<FileStore, "list">,
  accountOf: (drop: string) => number | undefined,
): InnerGateway["storedVersions"] {
  const versionsOf = async (accountId: number, paths: readonly string[]) => {
    const ids = [...new Set(paths.map(fileIdOf))];
    const { rows } = await files.list(accountId, { ids }, { offset: 0, limit: null });
    return new Map(rows.map((record) => [record.id, entryOf(record).mtime]));
  };
  return (asked) => {
    const byAccount = Map.groupBy(asked, ({ drop }) => accountOf(drop));
    const versions = new Map(
      [...byAccount].map(([accountId, own]) => {
        const paths = own.map(({ path }) => path);
        return [accountId, accountId === undefined ? undefined : versionsOf(accountId, paths)];
      }),
    );
    return settleEach(asked, async ({ drop, path }) => {
      const stored = await versions.get(accountOf(drop));
      return stored === undefined ? "no account" : { mtime: stored.get(fileIdOf(path)) ?? null };
    });
  };
}
