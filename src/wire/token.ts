/** The token interface (specification, *Authentication*; platform facts, *Tokens*). */
import { z } from "zod";

export const SCOPES = ["datahub-api", "push-data", "dashboards-api", "geozones-api", "odm-api"] as const;
/** Older names of scopes, which older clients ask for. */
const OLDER_SCOPES: ReadonlyMap<string, string> = new Map([["opisense-api", "datahub-api"]]);

export function newerScope(name: string): string {
  return OLDER_SCOPES.get(name.toLowerCase()) ?? name;
}

/**
 * Form body of POST {token_url}. `account` is the account id; `acr_values=accountId:<id>` is the older form
 * of it.
 */
export const tokenRequest = z.object({
  grant_type: z.string(),
  client_id: z.string(),
  client_secret: z.string(),
  username: z.string().optional(),
  password: z.string().optional(),
  refresh_token: z.string().optional(),
  scope: z.string().optional(),
  account: z.string().optional(),
  acr_values: z.string().optional(),
});
export type TokenRequest = z.infer<typeof tokenRequest>;

/** Response of the token endpoint. `expires_in` in seconds. Unknown fields are ignored. */
export const tokenResponse = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().positive(),
  token_type: z.string().optional(),
  scope: z.string().optional(),
  refresh_token: z.string().optional(),
  /** In seconds. */
  refresh_expires_in: z.number().positive().optional(),
});
export type TokenResponse = z.infer<typeof tokenResponse>;

/** OAuth 2.0 error response (RFC 6749, 5.2). */
export const tokenError = z.object({
  error: z.string(),
  error_description: z.string().optional(),
});
export type TokenError = z.infer<typeof tokenError>;
