/** Settings of single sign-on (`signIn` of hub.yaml). */
import { z } from "zod";
import { duration } from "../../support/quantities.ts";

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/;
/** Roles that a provider may give. */
const GIVEN_ROLES = ["User", "Datapusher", "Manager", "Admin"] as const;

const issuer = z.url().refine((text) => {
  const { protocol, hostname } = new URL(text);
  return protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname));
}, "must be an https address: what it answers decides who may enter");

const grant = z
  .strictObject({
    claim: z
      .string()
      .min(1)
      .optional()
      .describe(
        "Name of a claim of the provider, such as `groups`; a dot leads into an object (`realm_access.roles`). " +
          "All people whom the provider signs in, when absent.",
      ),
    value: z
      .union([z.string().min(1), z.number(), z.boolean()])
      .optional()
      .describe("What the claim must be, or a list in it hold; when absent, the claim must be there and not false."),
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
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "expected lower-case letters, digits and hyphens")
      .describe("Part of its addresses: `/sign-in/oidc/NAME`, and the redirect URI `/sign-in/oidc/NAME/callback`.")
      .meta({ examples: ["company"] }),
    label: z
      .string()
      .min(1)
      .max(60)
      .describe("Words of its button.")
      .meta({ examples: ["Sign in with Example"] }),
    issuer: issuer
      .describe("Issuer of the provider, below which its `/.well-known/openid-configuration` is.")
      .meta({ examples: ["https://login.example.org/realms/metering"] }),
    clientId: z.string().min(1).describe("What the provider calls this hub."),
    clientSecret: z
      .string()
      .min(1)
      .optional()
      .meta({ secret: true })
      .describe("Given by the provider; a public client without one has PKCE alone. Best given as ${env:NAME}."),
    clientAuthentication: z
      .enum(["basic", "post"])
      .default("basic")
      .describe("How the secret is sent: in a header (`client_secret_basic`) or the form; `basic` by default."),
    scopes: z
      .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, "expected a scope without blanks"))
      .default(["openid", "profile", "email"])
      .refine((scopes) => scopes.includes("openid"), "must hold openid")
      .describe("Scopes to ask for; `openid`, `profile` and `email` by default.")
      .meta({ examples: [["openid", "profile", "email", "groups"]] }),
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
        "Whether a person with a verified e-mail address (`email_verified`) is the user who has it. Only for " +
          "providers who verify addresses themselves; false by default.",
      ),
    grants: z
      .array(grant)
      .default([])
      .describe(
        "Accounts and roles by claims, set at each sign-in: in accounts that are named here the provider decides, in " +
          "others people.",
      )
      .meta({ examples: [[{ claim: "groups", value: "metering-managers", accounts: [1], roles: ["Manager"] }]] }),
    timeout: duration("10s").describe("How long the provider may take to answer; 10s by default."),
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
