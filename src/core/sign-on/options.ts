/** Settings of a provider of OpenID Connect that hub and console have in common. */
import { z } from "zod";
import { isLoopback } from "../listen-address.ts";
import { duration } from "../quantities.ts";

const issuer = z.url().refine((text) => {
  const { protocol, hostname } = new URL(text);
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}, "must be an https address: what it answers decides who may enter");

/** Part of addresses. */
export const providerName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "expected lower-case letters, digits and hyphens");

/** Fields of a rule that people fit by their claims (`ClaimRule`). */
export const claimShape = {
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
};

export const labelShape = {
  label: z
    .string()
    .min(1)
    .max(60)
    .describe("Words of its button.")
    .meta({ examples: ["Sign in with Example"] }),
  issuer: issuer
    .describe("Issuer of the provider, below which its `/.well-known/openid-configuration` is.")
    .meta({ examples: ["https://login.example.org/realms/metering"] }),
};

export const clientShape = {
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
};

export const timeoutShape = {
  timeout: duration("10s").describe("How long the provider may take to answer; 10s by default."),
};

export interface ProviderSettings {
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  readonly clientAuthentication: "basic" | "post";
  readonly scopes: readonly string[];
  /** Milliseconds. */
  readonly timeout: number;
}
