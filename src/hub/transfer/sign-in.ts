/** Users of the hub sign in to the file-transfer server as they do to the token interface. */
import { timingSafeEqual } from "node:crypto";
import ssh2, { type ParsedKey } from "ssh2";
import { ConfigError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { createRareWarning } from "#core/rare-warnings.ts";
import type { Passwords } from "#core/sign-in/passwords.ts";
import type { HubOptions } from "../options.ts";
import type { PeopleStore } from "../store/people/people.ts";
import type { UserRecord } from "../store/people/records.ts";
import type { FileRecord } from "../store/stored-files.ts";
import { signInByPassword } from "../token/guard.ts";
import { hasRight, RIGHT_WORDS } from "../token/rights.ts";
import { userGeneration } from "../token/tokens.ts";
import { type FileTree, TreeFault } from "./file-tree.ts";
import type { Folders } from "./folders.ts";

// Node cannot detect this name in the CommonJS module.
const { utils } = ssh2;

export interface TransferUser {
  readonly username: string;
  /** Accounts that the user may send files to. */
  readonly accounts: readonly number[];
  /** The files that the user may see and send. */
  treeFor(via: FileRecord["via"]): FileTree;
}

export type SignedIn =
  | { readonly kind: "user"; readonly user: TransferUser }
  | { readonly kind: "refused" }
  /** Too many attempts: the connection is ended. */
  | { readonly kind: "later"; readonly why: string };

export interface OfferedKey {
  readonly data: Buffer;
  /** Null: the client only asks whether the key would do. */
  readonly proof: { readonly signed: Buffer; readonly signature: Buffer; readonly hash: string | undefined } | null;
}

export interface SignIn {
  byPassword(username: string, password: string, address: string): Promise<SignedIn>;
  byKey(username: string, key: OfferedKey, address: string): Promise<SignedIn>;
}

interface Parts {
  readonly options: HubOptions;
  readonly people: PeopleStore;
  readonly folders: Pick<Folders, "open" | "treeFor">;
  readonly passwords: Passwords;
  readonly log: Logger;
}

const REFUSED = { kind: "refused" } as const;

/** Throws `ConfigError` for a key of the configuration that cannot be read. */
export function createSignIn({ options, people, folders, passwords, log }: Parts): SignIn {
  const keys = new Map(options.users.map(({ username, sshKeys }) => [username, keysOf(username, sshKeys)]));
  const warn = createRareWarning(log, "refused", "sign-ins to the file-transfer server were refused");
  const admitted = async (user: UserRecord, address: string): Promise<SignedIn> => {
    const { username } = user;
    const entered = user.memberships.map(({ accountId }) => accountId);
    const accounts = entered.filter((accountId) => hasRight(user, accountId, "push"));
    if (accounts.length > 0) {
      await folders.open(accounts);
      const admit = (accountId: number) => admitAgain(people, user, accountId);
      return {
        kind: "user",
        user: {
          username,
          accounts,
          treeFor: (via) => folders.treeFor(accounts, { id: user.id, username, via, admit }),
        },
      };
    }
    warn({ user: user.username, from: address, why: `the user lacks the right: ${RIGHT_WORDS.push}` });
    return REFUSED;
  };
  return {
    async byPassword(username, password, address) {
      const verdict = await signInByPassword({ people, passwords }, { name: username, password, address });
      if (verdict.kind === "user") return admitted(verdict.user, address);
      const why = verdict.kind === "wrong" ? "wrong user name or password" : verdict.why;
      warn({ user: username, from: address, why });
      return verdict.kind === "later" ? { kind: "later", why } : REFUSED;
    },
    async byKey(username, { data, proof }, address) {
      const known = keys.get(username)?.find((key) => isEqual(key.getPublicSSH(), data));
      if (known === undefined) return REFUSED;
      if (proof !== null && !known.verify(proof.signed, proof.signature, proof.hash)) return REFUSED;
      const user = await people.entrantByName(username);
      return user === null ? REFUSED : admitted(user, address);
    },
  };
}

/** Throws `TreeFault`: a session may be open for long, and is no longer that of the user who signed in. */
async function admitAgain(people: PeopleStore, { id, ...before }: UserRecord, accountId: number): Promise<void> {
  const user = await people.entrant(id);
  if (user === null) throw new TreeFault("denied", "the user was deactivated");
  if (userGeneration(user) !== userGeneration(before))
    throw new TreeFault("denied", "the password changed, or the sessions of the user were ended: sign in again");
  if (!hasRight(user, accountId, "push"))
    throw new TreeFault("denied", `the user may no longer send files to the account ${accountId}`);
}

function isEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

function keysOf(username: string, lines: readonly string[]): readonly ParsedKey[] {
  return lines.map((line, at) => {
    const key = utils.parseKey(line);
    if (!(key instanceof Error) && !Array.isArray(key)) return key;
    throw new ConfigError("HG-HUB-004", {
      operation: "start hub",
      subject: "configuration",
      message: `users: the entry ${at + 1} of sshKeys of ${username} is no public key of SSH`,
    });
  });
}
