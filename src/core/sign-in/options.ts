/** Settings of components that authenticate people and programs. */
import { z } from "zod";
import { duration } from "../quantities.ts";

const PASSWORD_CHARACTERS_LEAST = 8;

/** A password or secret that others sign in with. */
export const ownSecret = z
  .string()
  .min(
    PASSWORD_CHARACTERS_LEAST,
    `is shorter than ${PASSWORD_CHARACTERS_LEAST} characters and soon guessed; give a longer one`,
  )
  .meta({ secret: true });

export const signInLimits = {
  failures: z
    .int()
    .positive()
    .default(10)
    .describe(
      "Wrong secrets or passwords of one client or user from one address before 429; they count before they " +
        "are checked. 10 by default.",
    ),
  addressFailures: z
    .int()
    .positive()
    .optional()
    .describe("… from one address, whatever the names. Three times `failures`, and at least 30, when absent."),
  window: duration("5m").describe("Time after the first failure in which failures count; 5m by default."),
};

export const trustProxy = z
  .union([z.boolean(), z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])).min(1)])
  .default(false)
  .describe(
    "Proxies whose X-Forwarded-For is trusted: true, that of one proxy in front, whatever its address; or the " +
      "addresses and networks of proxies. Otherwise the header is ignored, since any client can write it.",
  )
  .meta({ examples: [["10.0.0.4", "192.168.7.0/24"]] });

/** For Fastify, where `true` would trust entries that clients wrote into the header before the proxy added theirs. */
export function trustedProxies(
  setting: z.output<typeof trustProxy>,
): false | string[] | ((address: string, hop: number) => boolean) {
  if (setting === true) return (_address, hop) => hop === 0;
  return setting === false ? false : [...setting];
}
