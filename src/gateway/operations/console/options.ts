/** Settings of the console (`operations.console`). */
import { z } from "zod";
import { hostOf, isLoopback, listenAddress, tlsPair } from "#core/listen-address.ts";
import { duration } from "#core/quantities.ts";
import { signInLimits, trustProxy } from "#core/sign-in/options.ts";
import { claimShape, clientShape, labelShape, providerName, timeoutShape } from "#core/sign-on/options.ts";
import { ROLES } from "../api/endpoint.ts";

const user = z.strictObject({
  name: z.string().min(1).max(200).describe("The name to sign in with; commands are recorded under it."),
  role: z.enum(ROLES).describe("viewer: sees everything and changes nothing; operator: also gives commands."),
  password: z
    .string()
    .regex(/^\$argon2id\$/, "is no hash of a password; `headgate console password` makes one")
    .describe("Hash of the password, from `headgate console password`.")
    .meta({ secret: true, examples: ["${file:/etc/headgate/console-ada}"] }),
});
export type ConsoleUser = z.output<typeof user>;

const provider = z.strictObject({
  name: providerName
    .describe("Part of its addresses: `/console/sign-in/oidc/NAME`, and the redirect URI below it, `…/NAME/callback`.")
    .meta({ examples: ["company"] }),
  ...labelShape,
  clientId: z.string().min(1).describe("What the provider calls this gateway."),
  ...clientShape,
  nameClaim: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Claim with the name under which commands are recorded: one that people cannot change themselves at the " +
        "provider, as they often can `preferred_username`. Otherwise it is the verified `email`, or `sub`.",
    ),
  roles: z
    .array(
      z
        .strictObject({ ...claimShape, role: z.enum(ROLES).describe("viewer or operator.") })
        .refine(({ claim, value }) => claim !== undefined || value === undefined, {
          path: ["claim"],
          message: "is missing: `value` is what a claim must be",
        }),
    )
    .min(1)
    .describe("Roles by claims: the highest that fits. A person whom none fits may not sign in.")
    .meta({ examples: [[{ claim: "groups", value: "metering-operators", role: "operator" }]] }),
  ...timeoutShape,
});
export type ConsoleProvider = z.output<typeof provider>;

export const consoleOptions = z.strictObject({
  listen: listenAddress
    .optional()
    .describe(
      "Address for the console and its data alone, while programs stay at `operations.listen`. Without it the " +
        "console is at `operations.listen`. Port 0 takes any free one.",
    )
    .meta({ examples: ["0.0.0.0:9443"] }),
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("Where browsers reach the console: the address of the proxy with TLS in front, which may have a path.")
    .meta({ examples: ["https://gateway.example.com/"] }),
  tls: tlsPair("console")
    .optional()
    .describe("Encryption of `listen`. Beyond loopback this or a `publicUrl` with https is required."),
  users: z
    .array(user)
    .default([])
    .describe("People who may sign in. On loopback without any, `headgate console link` prints a link that signs in."),
  oidc: z
    .array(provider)
    .default([])
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "two providers have the same name")
    .describe("Providers of OpenID Connect that sign people in, in the order of their buttons."),
  histories: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "Folders of this machine whose files operators may plan and migrate from the console, which reads them as the " +
        "gateway's user. Without any, migrations are planned by the command, and the console starts and pauses them.",
    )
    .meta({ examples: [["/mnt/archive"]] }),
  idle: duration("8h").describe("A session ends when its browser was not used for this long."),
  lifetime: duration("7d").describe("A session ends this long after the sign-in, however it is used."),
  throttle: z.strictObject(signInLimits).prefault({}).describe("Slows down guessing of passwords."),
  trustProxy,
});
export type ConsoleOptions = z.output<typeof consoleOptions>;

interface Placed {
  readonly listen: string;
  readonly console: ConsoleOptions;
}

/** Whether people sign in by themselves, so that links of the command line are not needed. */
export function hasPeople({ users, oidc }: Pick<ConsoleOptions, "users" | "oidc">): boolean {
  return users.length > 0 || oidc.length > 0;
}

/** Why the console is not served; null where it is. */
export function consoleRefusal({ listen, console }: Placed): string | null {
  if (isLoopback(hostOf(console.listen ?? listen))) return null;
  if (!hasPeople(console) && !isLocalUrl(console.publicUrl))
    return "beyond loopback the console needs people who sign in: set operations.console.users, or oidc";
  if (console.tls !== undefined || isSafeUrl(console.publicUrl)) return null;
  return (
    "beyond loopback the console needs TLS: set operations.console.tls, or operations.console.publicUrl to the " +
    "https address of the proxy in front"
  );
}

/** A console that was asked for, by people or by an address of its own, has to be served safely. */
export function checkConsole(options: Placed, context: z.RefinementCtx): void {
  const { console } = options;
  if (console.tls !== undefined && console.listen === undefined)
    context.addIssue({ code: "custom", path: ["console", "tls"], message: "requires `listen` beside it" });
  const names = console.users.map(({ name }) => nameKey(name));
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    context.addIssue({ code: "custom", path: ["console", "users"], message: `two users have the name ${twice}` });
  const refusal = consoleRefusal(options);
  if (refusal !== null && (hasPeople(console) || console.listen !== undefined))
    context.addIssue({ code: "custom", path: ["console"], message: refusal });
}

function isSafeUrl(url: string | undefined): boolean {
  return url !== undefined && (new URL(url).protocol === "https:" || isLocalUrl(url));
}

/** Such as that of a port of a container, which the machine offers to itself alone. */
function isLocalUrl(url: string | undefined): boolean {
  return url !== undefined && isLoopback(new URL(url).hostname);
}

/** In whatever case people write their names. */
export function nameKey(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
