/** The stored file that a push came from. */
import type { PushOrigin } from "../../wire/index.ts";
import type { HubStore } from "../store/store.ts";
import { isInnerUser } from "../token/inner.ts";

export interface PushedOperation {
  readonly accountId: number;
  readonly userId: number;
  readonly operationId: string;
}

export type OriginStore = Pick<HubStore, "files" | "fileTriggers">;

/** Beginning of the operation ids of all pushes of a file. */
export function operationPrefixOf(fileId: number): string {
  return `file-${fileId}`;
}

/** Null for a push of any client but the gateway inside the hub, whatever operationId it chose. */
export function fileIdOfPush({ userId, operationId }: Omit<PushedOperation, "accountId">): number | null {
  const id = isInnerUser(userId) ? /^file-(\d+)(?!\d)/.exec(operationId)?.[1] : undefined;
  return id === undefined ? null : Number(id);
}

/** The file of each push of one account; null for a push that came from no file. */
export async function originsOf(
  { files, fileTriggers }: OriginStore,
  operations: readonly PushedOperation[],
): Promise<readonly (PushOrigin | null)[]> {
  const ids = operations.map(fileIdOfPush);
  const wanted = new Set(ids.filter((id) => id !== null));
  const [accountId] = operations.map((operation) => operation.accountId);
  if (accountId === undefined || wanted.size === 0) return ids.map(() => null);
  const { rows } = await files.list(accountId, { ids: [...wanted] }, ALL);
  const triggerIds = [...new Set(rows.flatMap(({ triggerId }) => triggerId ?? []))];
  const triggers = await fileTriggers.list(accountId, { ids: triggerIds }, ALL);
  const names = new Map(triggers.rows.map(({ id, name }) => [id, name]));
  const found = new Map(
    rows.map(({ id, fileName, via, createdBy, triggerId }): [number, PushOrigin] => {
      const trigger = triggerId === null ? null : { id: triggerId, name: names.get(triggerId) ?? null };
      return [id, { id, fileName, via, createdBy, trigger }];
    }),
  );
  return ids.map((id) => (id === null ? null : (found.get(id) ?? { ...REMOVED, id })));
}

const ALL = { offset: 0, limit: null };
const REMOVED = { fileName: null, via: null, createdBy: null, trigger: null };
