/** Settings of keys and tokens. */
import { z } from "zod";
import { duration } from "#core/quantities.ts";

export const refreshTokens = z.strictObject({
  lifetime: duration("30d").describe(
    "How long a refresh token can be used; each use gives another for as long. 30d by default.",
  ),
  grace: duration("30s").describe(
    "How long a used refresh token is taken again, since the answer to its first use may be lost; 30s by default.",
  ),
});

export const signingKeys = z.strictObject({
  renewAfter: duration("90d").describe(
    "Age at which a key is followed by a new one; the old one verifies until its tokens have lapsed. 90d by default.",
  ),
  renewedSince: z.iso
    .datetime({ offset: true })
    .optional()
    .describe("Keys made before this moment sign no more: set it to now to renew at the next start.")
    .meta({ examples: ["2026-03-01T00:00:00Z"] }),
  revokedBefore: z.iso
    .datetime({ offset: true })
    .optional()
    .describe("Keys made before this moment verify no more either, since one has leaked: their tokens end at once.")
    .meta({ examples: ["2026-03-01T00:00:00Z"] }),
});
