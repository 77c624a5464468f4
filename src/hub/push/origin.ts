/** The stored file that a push came from. */
import type { PushOrigin } from "#wire/index.ts";
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
export function fileIdOfPush(push: Omit<PushedOperation, "accountId">): number | null {
  return claimOf(push)?.fileId ?? null;
}

interface ClaimedFile {
  readonly fileId: number;
  readonly triggerId: number;
}

function claimOf({ userId, operationId }: Omit<PushedOperation, "accountId">): ClaimedFile | null {
  const found = isInnerUser(userId) ? /^file-(\d+)-trigger-(\d+)(?!\d)/.exec(operationId) : null;
  if (found === null) return null;
  const [, fileId, triggerId] = found;
  return { fileId: Number(fileId), triggerId: Number(triggerId) };
}

/** The file of each push of one account; null for a push that came from no file. */
export async function originsOf(
  { files, fileTriggers }: OriginStore,
  operations: readonly PushedOperation[],
): Promise<readonly (PushOrigin | null)[]> {
  const claims = operations.map(claimOf);
  const ids = [...new Set(claims.flatMap((claim) => claim?.fileId ?? []))];
  const [accountId] = operations.map((operation) => operation.accountId);
  if (accountId === undefined || ids.length === 0) return claims.map(() => null);
  const { rows } = await files.list(accountId, { ids }, ALL);
  const records = new Map(rows.map((record) => [record.id, record]));
  const triggerIds = [...new Set(claims.flatMap((claim) => claim?.triggerId ?? []))];
  const triggers = await fileTriggers.list(accountId, { ids: triggerIds }, ALL);
  const names = new Map(triggers.rows.map(({ id, name }) => [id, name]));
  return claims.map((claim) => {
    if (claim === null) return null;
    const { fileName, via, createdBy } = records.get(claim.fileId) ?? REMOVED;
    const trigger = { id: claim.triggerId, name: names.get(claim.triggerId) ?? null };
    return { id: claim.fileId, fileName, via, createdBy, trigger };
  });
}

const ALL = { offset: 0, limit: null };
const REMOVED = { fileName: null, via: null, createdBy: null };
