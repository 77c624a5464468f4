/** Compares the users that a file wants with those of the account, by the rules that hold for managers elsewhere. */

import { isDeepStrictEqual } from "node:util";
import { ROLE_NAMES, type RoleName, readAs, userFields } from "#wire/index.ts";
import { fullWords } from "../account-limits.ts";
import { fieldWords } from "../http/field-words.ts";
import type { FoundUsers, MemberPlan } from "../store/people/member-plan.ts";
import type { UserRecord } from "../store/people/records.ts";
import { isPasswordForeign } from "../store/people/users.ts";
import { FOREIGN_PASSWORD, mayGive, mayManage, mayManagePerson, roleNamed, rolesIn } from "../token/rights.ts";
import { foldedName, refuse, type Wanted } from "./wanted.ts";

/** The user who sends a file, and the rights of that user. */
export type Sender = Pick<UserRecord, "id" | "username" | "memberships">;

interface JudgedFor {
  readonly accountId: number;
  readonly atMs: number;
  readonly sender: Sender;
  /** Users that the account may have. */
  readonly most: number;
}

export type UserVerdict =
  | { readonly kind: "refused" }
  /** `at`: place among the users that the plan creates. */
  | { readonly kind: "created"; readonly at: number }
  | { readonly kind: "known"; readonly id: number; readonly fields: readonly string[] };

/** By which rows of a file give the same. */
const KEY_OF = { username: readAs, email: foldedName, businessId: (value: string) => value } as const;
const REFUSED = { kind: "refused" } as const;
const PERSONAL = ["username", "email", "firstName", "lastName"] as const;

type Growing<List> = List extends readonly (infer One)[] ? One[] : never;

/** The fields of a user, as `userFields` names them. */
interface Facts {
  readonly username: string;
  readonly email: string | null;
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly businessId: string | null;
  readonly roles: readonly RoleName[];
}

export class UserJudging {
  readonly #found: FoundUsers;
  readonly #for: JudgedFor;
  /** Members by name, by folded name, and by business id. */
  readonly #named = new Map<string, UserRecord>();
  readonly #alike = new Map<string, UserRecord>();
  readonly #numbered = new Map<string, UserRecord>();
  readonly #users: Growing<MemberPlan["users"]> = [];
  readonly #changed: Growing<MemberPlan["changedUsers"]> = [];
  /** Names, addresses and ids that the file gives, by their kind. */
  readonly #given = new Map<string, Wanted>();

  constructor(found: FoundUsers, judgedFor: JudgedFor) {
    this.#found = found;
    this.#for = judgedFor;
    for (const one of found.members.toReversed()) {
      this.#named.set(one.username, one);
      this.#alike.set(foldedName(one.username), one);
      const { businessId } = this.#factsOf(one);
      if (businessId !== null) this.#numbered.set(businessId, one);
    }
  }

  get plan(): MemberPlan {
    const { sender, atMs } = this.#for;
    const actor = { id: sender.id, name: sender.username, impersonator: null, address: null };
    return { users: this.#users, changedUsers: this.#changed, actor, atMs };
  }

  judge(wanted: Wanted): UserVerdict {
    const known = this.#known(wanted);
    const current = known === undefined ? null : this.#factsOf(known);
    const facts = this.#wanted(wanted, current);
    if (facts === null || !this.#isFree(wanted, facts, known)) return REFUSED;
    return known === undefined || current === null
      ? this.#created(wanted, facts)
      : this.#changes(wanted, facts, known, current);
  }

  #created(wanted: Wanted, facts: Facts): UserVerdict {
    const { username, email, firstName, lastName, roles, businessId } = facts;
    if (!this.#mayGive(wanted, roles)) return REFUSED;
    const { most } = this.#for;
    if (this.#found.members.length + this.#users.length >= most)
      return this.#refused(wanted, fullWords({ table: "membership", most }));
    const names = { username, email, firstName, lastName };
    const user = { ...names, state: "Invited", passwordHash: null, origin: "people" } as const;
    const at = this.#users.push({ user, roles, businessId }) - 1;
    const note = `${username} has no password yet: send a link to set one (GET /user/updatePasswordLink?UserId=…)`;
    wanted.owner?.notes.push(note);
    return { kind: "created", at };
  }

  #changes(wanted: Wanted, facts: Facts, known: UserRecord, current: Facts): UserVerdict {
    const { accountId, sender } = this.#for;
    const names = Object.keys(facts) as (keyof Facts)[];
    const fields = names.filter((name) => !isDeepStrictEqual(facts[name], current[name]));
    if (fields.length === 0) return { kind: "known", id: known.id, fields };
    const personal = PERSONAL.filter((name) => fields.includes(name));
    if (!mayManage(sender, accountId, known))
      return this.#refused(wanted, `it has a higher role than ${sender.username}, who sent the file`);
    if (personal.length > 0 && known.id !== sender.id && !mayManagePerson(sender, accountId, known))
      return this.#refused(wanted, `it belongs to another account, too: its ${personal.join(", ")} cannot be changed`);
    // A file may come by a token of a program, which is not to lead to the password of its user.
    if (known.id === sender.id && (personal.includes("username") || personal.includes("email")))
      return this.#refused(wanted, `${sender.username} sent the file, and cannot change the own name or email by it`);
    if (personal.includes("username") && known.origin === "configuration")
      return this.#refused(wanted, "its name comes from the configuration of the hub", "username");
    if (fields.includes("roles")) {
      if (
        !this.#mayGive(
          wanted,
          facts.roles.filter((role) => !current.roles.includes(role)),
        )
      )
        return REFUSED;
      if (facts.roles.includes("Admin") && !current.roles.includes("Admin") && isPasswordForeign(known))
        return this.#refused(wanted, FOREIGN_PASSWORD, "roles");
      if (known.id === sender.id && !facts.roles.includes("Manager") && !facts.roles.includes("Admin"))
        return this.#refused(wanted, `${sender.username} sent the file, and cannot lose the own role by it`, "roles");
    }
    const { username, email, firstName, lastName, roles, businessId } = facts;
    const change = {
      ...{ firstName, lastName },
      ...(fields.includes("username") ? { username } : {}),
      ...(fields.includes("email") ? { email } : {}),
    };
    this.#changed.push({ user: known, change, fields, roles, businessId });
    return { kind: "known", id: known.id, fields };
  }

  /** By the name, else by the business id. */
  #known({ fields }: Wanted): UserRecord | undefined {
    const username = String(fields["username"] ?? "");
    return (
      this.#named.get(username) ??
      this.#alike.get(foldedName(username)) ??
      this.#numbered.get(String(fields["businessId"] ?? ""))
    );
  }

  #factsOf(user: UserRecord): Facts {
    const { accountId } = this.#for;
    const { username, email, firstName, lastName } = user;
    const businessId = user.memberships.find((one) => one.accountId === accountId)?.businessId ?? null;
    return { username, email, firstName, lastName, businessId, roles: rolesIn(user, accountId) };
  }

  /** The wanted facts of the user; null: they are refused. */
  #wanted(wanted: Wanted, current: Facts | null): Facts | null {
    const said = wanted.fields;
    const unknown = ((said["roles"] ?? []) as readonly string[]).find((name) => roleNamed(name) === undefined);
    if (unknown !== undefined) {
      refuse(wanted, `there is no role ${unknown}, but ${ROLE_NAMES.join(", ")}`, "roles");
      return null;
    }
    // A name that differs by case alone is the same name.
    const isAlike = current !== null && foldedName(String(said["username"] ?? "")) === foldedName(current.username);
    const names = isAlike ? { username: current.username } : {};
    const before = Object.fromEntries(Object.entries(current ?? { roles: ["User"] }).filter(([, one]) => one !== null));
    const parsed = userFields.safeParse({ ...before, ...said, ...names }, { error: fieldWords });
    if (!parsed.success) {
      for (const { path, message } of parsed.error.issues) {
        const field = String(path[0] ?? "");
        const isMissing = field === "username" && said["username"] === undefined;
        refuse(wanted, isMissing ? "a new user needs its user_name" : message, field);
      }
      return null;
    }
    const { username, email = null, firstName = null, lastName = null, businessId = null, roles } = parsed.data;
    return {
      username,
      email,
      firstName,
      lastName,
      businessId,
      roles: ROLE_NAMES.filter((role) => roles.includes(role)),
    };
  }

  /** In the hub, in the account, and in the file. */
  #isFree(wanted: Wanted, { username, email, businessId }: Facts, known: UserRecord | undefined): boolean {
    const { usernames, emails } = this.#found;
    const isOthers = (id: number | undefined) => id !== undefined && id !== known?.id;
    const numbered = businessId === null ? undefined : this.#numbered.get(businessId);
    const isTaken = (name: string) => isOthers(usernames.get(name)) || isOthers(emails.get(name));
    const faults = [
      isTaken(foldedName(username)) || isTaken(readAs(username))
        ? ["username", "a user of this hub has this name, or one that looks like it"]
        : [],
      email !== null && isOthers(emails.get(foldedName(email)))
        ? ["email", "a user of this hub has this address: invite that person to the account instead"]
        : [],
      isOthers(numbered?.id) ? ["businessId", `${numbered?.username} has this id`] : [],
      ...(["username", "email", "businessId"] as const).map((field) => {
        const value = { username, email, businessId }[field];
        if (value === null) return [];
        const key = `${field} ${KEY_OF[field](value)}`;
        const other = this.#given.get(key);
        this.#given.set(key, other ?? wanted);
        return other === undefined || other === wanted ? [] : [field, "another row gives it to another user"];
      }),
    ];
    for (const [field, why] of faults) if (why !== undefined) refuse(wanted, why, field);
    return faults.every((fault) => fault.length === 0);
  }

  #mayGive(wanted: Wanted, roles: readonly RoleName[]): boolean {
    const { sender, accountId } = this.#for;
    if (mayGive(sender, accountId, roles)) return true;
    refuse(wanted, `${sender.username}, who sent the file, cannot give the roles ${roles.join(", ")}`, "roles");
    return false;
  }

  #refused(wanted: Wanted, why: string, field?: string): UserVerdict {
    refuse(wanted, why, field);
    return REFUSED;
  }
}
