/** Invitations to an account (an extension of Headgate, `docs/hub/people.md`, *Invitations and mail*). */
import { z } from "zod";
import { shownValue } from "#core/shown-value.ts";
import { anyCase, caseless, inOrder, paging, queryInteger } from "./caseless.ts";

export const INVITATION_STATES = ["Open", "Accepted", "Withdrawn", "Expired"] as const;
export type InvitationState = (typeof INVITATION_STATES)[number];

/** Roles of an account. Admin is the operator's to give. */
export const ACCOUNT_ROLES = ["User", "Datapusher", "Manager"] as const;

const EMAIL_CHARACTERS_MAX = 254;
const NAME_CHARACTERS_MAX = 100;

/** For schemas of one address, without a name. */
export const emailWords = ({ input }: { readonly input?: unknown }): string =>
  input === undefined ? "is missing" : `is no e-mail address, such as bob@example.com: ${shownValue(input)}`;

export const emailAddress = z.email({ error: emailWords }).max(EMAIL_CHARACTERS_MAX).describe("E-mail address.");

const personName = z.string().trim().max(NAME_CHARACTERS_MAX);

export const invitationBody = caseless(
  z.object({
    email: emailAddress.describe("Where the mail with the link goes."),
    roles: z
      .array(anyCase(ACCOUNT_ROLES))
      .min(1)
      .default(["User"])
      .describe("Roles in the account, none above those of the caller; User when left out."),
    firstName: personName.optional().describe("May be changed by the invited person."),
    lastName: personName.optional().describe("May be changed by the invited person."),
  }),
);
export type InvitationBody = z.infer<typeof invitationBody>;

export const invitation = z.object({
  id: z.int(),
  email: z.string(),
  roles: z.array(z.string()),
  firstName: z.string().nullable(),
  lastName: z.string().nullable(),
  state: z.enum(INVITATION_STATES),
  invitedBy: z.string().describe("Name of the user who invited."),
  created: z.string(),
  expires: z.string().describe("End of the link of the last mail."),
  userId: z.int().nullable().describe("The user who accepted."),
  mail: z
    .enum(["waiting", "sent", "failed"])
    .nullable()
    .describe("What became of the last mail; null when its record is no longer kept."),
  mailFailure: z.string().nullable().describe("Why the mail could not be sent so far, or at all."),
});
export type Invitation = z.infer<typeof invitation>;

export const invitationsQuery = caseless(
  z.object({
    State: inOrder(INVITATION_STATES).optional().describe("Only invitations in this state."),
    ...paging,
  }),
);

export const passwordLinkQuery = caseless(
  z.object({
    UserId: queryInteger.optional().describe("A user of the account, for its managers; the caller when left out."),
  }),
);

export const passwordLink = z.object({
  link: z.string().describe("Leads to the page that takes the new password. It works once."),
  expires: z.string().describe("Until when it works."),
});
