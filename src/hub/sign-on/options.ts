/** Settings of single sign-on (`signIn` of hub.yaml). */
import { z } from "zod";
import { claimShape, clientShape, labelShape, providerName, timeoutShape } from "#core/sign-on/options.ts";

/** Roles that a provider may give. */
const GIVEN_ROLES = ["User", "Datapusher", "Manager", "Admin"] as const;

const grant = z
  .strictObject({
    ...claimShape,
    accounts: z.array(z.int().positive()).min(1).describe("Accounts that such people may enter."),
    roles: z.array(z.enum(GIVEN_ROLES)).min(1).default(["User"]).describe("Their roles there; `[User]` by default."),
  })
  .superRefine(({ claim, value, roles }, context) => {
    if (claim === undefined && value !== undefined)
      context.addIssue({ code: "custom", path: ["claim"], message: "is missing: `value` is what a claim must be" });
    if (roles.includes("Admin") && value === undefined)
      context.addIssue({
        code: "custom",
        path: ["roles"],
        message: "Admin enters every account, so that it takes a `claim` with a `value`",
      });
  });

const provider = z
  .strictObject({
    name: providerName
      .describe("Part of its addresses: `/sign-in/oidc/NAME`, and the redirect URI `/sign-in/oidc/NAME/callback`.")
      .meta({ examples: ["company"] }),
    ...labelShape,
    clientId: z.string().min(1).describe("What the provider calls this hub."),
    ...clientShape,
    usernameClaim: z
      .string()
      .min(1)
      .default("preferred_username")
      .describe("Claim from which new users get their name; otherwise it is `email` or `sub`."),
    createUsers: z
      .boolean()
      .default(false)
      .describe("Whether people whom the hub does not know become users at their first sign-in; false by default."),
    matchByEmail: z
      .boolean()
      .default(false)
      .describe(
        "Whether a person with a verified e-mail address (`email_verified`) is the user who has it; one who never " +
          "proved it by a mail of the hub is sent one first. Only for providers who verify addresses themselves; " +
          "false by default.",
      ),
    grants: z
      .array(grant)
      .default([])
      .describe(
        "Accounts and roles by claims, set at each sign-in: in accounts that are named here the provider decides, in " +
          "others people.",
      )
      .meta({ examples: [[{ claim: "groups", value: "metering-managers", accounts: [1], roles: ["Manager"] }]] }),
    ...timeoutShape,
  })
  .superRefine(({ createUsers, grants }, context) => {
    if (!createUsers || grants.length > 0) return;
    const message = "must let people into an account, where `createUsers` is true: without one none is created";
    context.addIssue({ code: "custom", path: ["grants"], message });
  });

export const signInOptions = z.strictObject({
  oidc: z
    .array(provider)
    .default([])
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "two providers have the same name")
    .describe("Providers of OpenID Connect that sign people in, in the order of their buttons; none by default."),
});

export type OidcProvider = z.output<typeof provider>;
