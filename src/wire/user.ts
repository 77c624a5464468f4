/** Users, their roles and claims (specification, *User role and claim*), and personal tokens. */
import { z } from "zod";
import { anyCase, caseless, inOrder, listOf, paging, queryInteger } from "./caseless.ts";
import { emailWords } from "./invitation.ts";
import { newerScope, SCOPES } from "./token.ts";

export const AUDIT_ACTIONS = [
  "user.created",
  "user.changed",
  "user.activated",
  "user.deactivated",
  "membership.added",
  "membership.removed",
  "roles.changed",
  "claim.set",
  "claim.removed",
  "password.changed",
  "password.link-sent",
  "password.link-made",
  "password.reset",
  "second-factor.added",
  "second-factor.removed",
  "token.created",
  "token.removed",
  "session.began",
  "session.ended",
  "sessions.ended",
  "invitation.created",
  "invitation.sent",
  "invitation.removed",
  "invitation.accepted",
  "impersonation.began",
  "impersonation.ended",
  "sign-on.linked",
  "subscription.created",
  "subscription.changed",
  "subscription.removed",
  "subscription.resumed",
] as const;

export const AUDIT_SUBJECTS = ["user", "invitation", "token", "subscription"] as const;

/** In the order of their ranks. */
export const ROLE_NAMES = ["User", "Datapusher", "Manager", "Admin"] as const;
export type RoleName = (typeof ROLE_NAMES)[number];

export const USER_STATES = ["Active", "Invited", "Inactive"] as const;
export const BUSINESS_KEYS = ["Id", "Username", "Email", "BusinessId"] as const;

/** A role by its name in any case, or as the object that answers show. */
const roleNamed = z.preprocess((input) => {
  const name =
    typeof input === "object" && input !== null ? (Reflect.get(input, "id") ?? Reflect.get(input, "name")) : input;
  return typeof name === "string" && name.toLowerCase() === "datapusher.standard" ? "Datapusher" : name;
}, anyCase(ROLE_NAMES));

const scopeNamed = z.preprocess((input) => (typeof input === "string" ? newerScope(input) : input), anyCase(SCOPES));
const SHORT = 200;
const short = z.string().trim().min(1).max(SHORT);

const fields = {
  // A colon would end the name in Basic credentials.
  username: short
    .regex(/^[^\p{Cc}:]+$/u, "has no colon and no control characters")
    .superRefine(refuseAlike)
    .describe("Name to sign in with."),
  email: z.email({ error: emailWords }).max(320).optional().describe("Address for messages, unique in the hub."),
  firstName: short.optional().describe("First name."),
  lastName: short.optional().describe("Last name."),
  businessId: short.optional().describe("Identifier that the account gives to the user."),
  roles: z.array(roleNamed).max(ROLE_NAMES.length).describe("Names of the roles of the user in the account."),
};

/** Fields of a user that PUT and PATCH change. */
export const userFields = caseless(z.object(fields));
export type UserFields = z.infer<typeof userFields>;

/** Body of a change. Invited is what the hub says of a user without a password of the own. */
export const userChange = caseless(
  z.object({ ...fields, state: inOrder(USER_STATES).describe("Inactive: can sign in no longer; Active: can again.") }),
);
export type UserChange = z.infer<typeof userChange>;

export const userBody = caseless(
  z.object({
    ...fields,
    username: fields.username.optional().describe("Name to sign in with; the email where it is absent."),
    roles: fields.roles.optional().describe("Names of the roles of the user in the account; User by default."),
    state: inOrder(USER_STATES).optional().describe("A new user is Invited with a temporary password, else Active."),
    password: z.string().optional().describe("Password; without it the hub sends a temporary one by mail."),
    mustChangePassword: z
      .boolean()
      .optional()
      .describe("Whether the given password has to be changed at the first sign-in; true by default."),
  }),
);
export type UserBody = z.infer<typeof userBody>;

/** Body of PUT …/roles. */
export const rolesBody = fields.roles;

export const role = z.object({ id: z.string(), name: z.string() });
export const claim = z.object({
  id: z.literal(0),
  userId: z.int(),
  claimType: z.string(),
  claimValue: z.string(),
});
export type Claim = z.infer<typeof claim>;

export const claimBody = caseless(z.object({ claimValue: z.string().max(4_000).describe("Value of the claim.") }));

export const user = z.object({
  id: z.int(),
  username: z.string(),
  email: z.string().nullish(),
  firstName: z.string().nullish(),
  lastName: z.string().nullish(),
  businessId: z.string().nullish(),
  state: z.enum(USER_STATES).optional(),
  roles: z.array(role).optional(),
  claims: z.array(claim).optional(),
  memberships: z.array(z.object({ accountId: z.int(), roles: z.array(role) })).optional(),
  mustChangePassword: z.boolean().optional(),
  secondFactor: z.boolean().optional(),
});
export type User = z.infer<typeof user>;

/** The levels of other resources count as well. */
export const USER_LEVELS = ["UserLight", "User", "VerboseUser", "Light", "Normal", "Verbose"] as const;
const displayLevel = anyCase(USER_LEVELS, { UserLight: 0, User: 1, VerboseUser: 2 })
  .optional()
  .describe("How much is shown of each user: UserLight, User or VerboseUser.");

export const usersQuery = caseless(
  z.object({
    DisplayLevel: displayLevel,
    "BusinessKeys.Name": inOrder(BUSINESS_KEYS).optional().describe("The key by which users are found."),
    "BusinessKeys.Values": listOf(z.string()).optional().describe("Values of the key; repeat it for several users."),
    ...paging,
  }),
);
export type UsersQuery = z.infer<typeof usersQuery>;
export const userQuery = caseless(z.object({ DisplayLevel: displayLevel }));
export const account = z.object({ id: z.int(), name: z.string() });

export const personalTokenBody = caseless(
  z.object({
    name: short.describe("What the token is for."),
    scopes: z.array(scopeNamed).min(1).optional().describe("Scopes of the token; datahub-api by default."),
    days: z.int().min(1).max(366).describe("Days until it expires, 366 at most."),
  }),
);

export const personalToken = z.object({
  id: z.int(),
  name: z.string(),
  scopes: z.array(z.string()),
  created: z.string(),
  expires: z.string(),
  lastUsed: z.string().nullable(),
});
export type PersonalToken = z.infer<typeof personalToken>;
/** The value is shown once. */
export const newPersonalToken = personalToken.extend({ token: z.string() });

export const auditQuery = caseless(
  z.object({
    UserId: queryInteger.optional().describe("Only what this user did, or what was done about him."),
    From: z.string().optional(),
    To: z.string().optional(),
    ...paging,
  }),
);

const person = z.object({ id: z.int().nullable(), name: z.string() });
export const auditEntry = z.object({
  id: z.int(),
  at: z.string(),
  actor: person,
  impersonator: person.nullable(),
  action: z.enum(AUDIT_ACTIONS),
  subject: z.object({ kind: z.enum(AUDIT_SUBJECTS), id: z.string(), name: z.string() }),
  facts: z.record(z.string(), z.unknown()),
  address: z.string().nullable(),
});
export type AuditEntry = z.infer<typeof auditEntry>;

/** Scripts that are written together with each other, and with Latin (Unicode, UTS 39, *highly restrictive*). */
const ASIAN = ["Han", "Hiragana", "Katakana", "Hangul", "Bopomofo"];
const SCRIPTS = [
  ...["Latin", "Greek", "Cyrillic", "Armenian", "Georgian", "Hebrew", "Arabic", "Devanagari", "Thai"],
  ...ASIAN,
];
const LETTER_OF = SCRIPTS.map((script) => ({ script, pattern: new RegExp(`\\p{Script_Extensions=${script}}`, "u") }));

/** No ink: controls, marks of direction, joiners, fillers, private and unassigned ones, and blanks of other widths. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u;

/** Letters of other scripts, and rare ones of Latin, that look like these. */
const LIKE_LATIN = new Map(
  Object.entries({
    ...{ а: "a", ɑ: "a", α: "a", с: "c", ϲ: "c", ԁ: "d", е: "e", ɡ: "g", һ: "h", հ: "h", і: "i", ı: "i", ι: "i" },
    ...{ ј: "j", κ: "k", к: "k", ӏ: "l", п: "n", ո: "n", ν: "v", о: "o", ο: "o", օ: "o", р: "p", ρ: "p", ԛ: "q" },
    ...{
      ѕ: "s",
      т: "t",
      τ: "t",
      υ: "u",
      ս: "u",
      ѵ: "v",
      ԝ: "w",
      х: "x",
      χ: "x",
      у: "y",
      γ: "y",
      в: "b",
      м: "m",
      н: "h",
    },
  }),
);

/** Null for a good name; otherwise what is wrong, as the rest of a sentence. */
export function userNameFault(name: string): string | null {
  const unseen = UNSEEN.exec(name)?.[0];
  if (unseen !== undefined) return `holds the character ${codeOf(unseen)}, which is not seen: write it without`;
  const usual = name.normalize("NFKC");
  if (usual !== name.normalize("NFC")) return `is written with variants of characters: write ${usual}`;
  const mixed = name.split(/[^\p{L}\p{M}\p{N}]+/u).find((word) => !isOfOneScript(word));
  if (mixed === undefined) return null;
  return `has the word ${mixed}, whose letters are of several scripts and may look like others: write it in one`;
}

/** For a schema of a name. */
export function refuseAlike(name: string, context: z.core.$RefinementCtx<string>): void {
  const message = userNameFault(name);
  if (message !== null) context.addIssue({ code: "custom", message, input: name });
}

/** The name that a person may read instead; the name itself where none of its letters looks like another. */
export function readAs(name: string): string {
  const folded = name.normalize("NFC").toLowerCase();
  return [...folded].map((letter) => LIKE_LATIN.get(letter) ?? letter).join("");
}

function isOfOneScript(word: string): boolean {
  const letters = [...word].filter((letter) => /\p{L}/u.test(letter));
  const fits = (scripts: readonly string[]) =>
    letters.every((letter) => {
      const known = LETTER_OF.filter(({ pattern }) => pattern.test(letter));
      // Letters of the other scripts form a group of their own.
      return known.length === 0 ? scripts.length === 0 : known.some(({ script }) => scripts.includes(script));
    });
  return fits(["Latin", ...ASIAN]) || fits([]) || SCRIPTS.some((script) => fits([script]));
}

function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

// Entries of the audit trail of an account (an extension of Headgate, `docs/hub/people.md`, *People*).

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export type AuditSubject = (typeof AUDIT_SUBJECTS)[number];
