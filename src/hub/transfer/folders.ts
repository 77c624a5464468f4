/** The folders of all accounts, and what a user sees of them. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { PRIVATE_FOLDER } from "#core/private-files.ts";
import { AccountFolder, type FolderParts } from "./account-folder.ts";
import { type Entry, type FileTree, noSuchFile, TreeFault } from "./file-tree.ts";
import type { Sender } from "./take.ts";

const SWEEP_MS = 600_000;

export interface Folders {
  /** Makes the folders of accounts that came after the start. */
  open(accountIds: readonly number[]): Promise<void>;
  /** The account's folder, or with several accounts a folder for each. */
  treeFor(accountIds: readonly number[], sender: Sender): FileTree;
  close(): Promise<void>;
}

interface Parts extends Omit<FolderParts, "root" | "accountId"> {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export async function openFolders(accountIds: readonly number[], parts: Parts): Promise<Folders> {
  const { path, clock, log } = parts;
  const folders = new Map<number, AccountFolder>();
  const openOne = async (accountId: number) => {
    if (folders.has(accountId)) return;
    const root = join(path, String(accountId));
    await mkdir(root, { recursive: true, mode: PRIVATE_FOLDER });
    // Another connection may have opened it meanwhile.
    if (folders.has(accountId)) return;
    const folder = new AccountFolder({ ...parts, root, accountId });
    folders.set(accountId, folder);
    await folder.sweep();
  };
  const openAll = async (ids: readonly number[]) => {
    for (const accountId of ids) await openOne(accountId);
  };
  await openAll(accountIds);
  const closing = new AbortController();
  const sweeping = (async () => {
    while (await clock.sleep(SWEEP_MS, closing.signal)) {
      for (const [account, folder] of folders) {
        try {
          await folder.sweep();
        } catch (thrown) {
          log.error({ account, err: wordsOf(thrown) }, "old uploads could not be removed; this is tried again");
        }
      }
    }
  })();
  const treeOf = (accountId: number, sender: Sender) => {
    const folder = folders.get(accountId);
    if (folder === undefined) throw new Error(`the account ${accountId} has no folder`);
    return folder.treeFor(sender);
  };
  return {
    open: openAll,
    treeFor(own, sender) {
      const [only] = own;
      if (only !== undefined && own.length === 1) return treeOf(only, sender);
      return treeOfAccounts(new Map(own.map((accountId) => [String(accountId), treeOf(accountId, sender)])));
    },
    async close() {
      closing.abort();
      await sweeping;
      for (const folder of folders.values()) await folder.close();
    },
  };
}

function treeOfAccounts(accounts: ReadonlyMap<string, FileTree>): FileTree {
  const refused = () => new TreeFault("denied", "each folder here is that of an account; choose one of them");
  const parted = (path: string): [FileTree, string] | null => {
    const [, account = "", ...rest] = path.split("/");
    if (account === "") return null;
    const tree = accounts.get(account);
    if (tree === undefined) throw rest.length === 0 ? refused() : noSuchFile();
    return [tree, `/${rest.join("/")}`];
  };
  const within = async <T>(path: string, work: (tree: FileTree, inner: string) => Promise<T>): Promise<T> => {
    const parts = parted(path);
    if (parts === null) throw refused();
    return await work(...parts);
  };
  const folder = (name: string): Entry => ({ name, kind: "folder", size: 0, modifiedMs: 0 });
  return {
    stat: async (path) => (parted(path) === null ? folder("/") : within(path, (tree, inner) => tree.stat(inner))),
    list: async (path) =>
      parted(path) === null ? [...accounts.keys()].map(folder) : within(path, (tree, inner) => tree.list(inner)),
    write: (path, mode) => within(path, (tree, inner) => tree.write(inner, mode)),
    read: (path) => within(path, (tree, inner) => tree.read(inner)),
    rename: (from, to) =>
      within(from, (tree, inner) =>
        within(to, (other, target) => {
          if (other !== tree) throw new TreeFault("denied", "a file stays in the folder of its account");
          return tree.rename(inner, target);
        }),
      ),
    remove: (path) => within(path, (tree, inner) => tree.remove(inner)),
    makeFolder: async (path) => within(path, (tree, inner) => tree.makeFolder(inner)),
    removeFolder: (path) => within(path, (tree, inner) => tree.removeFolder(inner)),
    setModified: (path, ms) => within(path, (tree, inner) => tree.setModified(inner, ms)),
    truncate: (path, size) => within(path, (tree, inner) => tree.truncate(inner, size)),
    answersArrived() {
      for (const tree of accounts.values()) tree.answersArrived?.();
    },
  };
}
