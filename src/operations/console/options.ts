/** Settings of the console (`operations.console`). */
import { z } from "zod";
import { hostOf, isLoopback, listenAddress } from "../../support/listen-address.ts";
import { duration } from "../../support/quantities.ts";
import { signInLimits, trustProxy } from "../../support/sign-in/options.ts";
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
  tls: z
    .strictObject({
      key: z
        .string()
        .min(1)
        .describe("Private key (PEM).")
        .meta({ secret: true, examples: ["${file:/etc/headgate/console.key}"] }),
      cert: z
        .string()
        .min(1)
        .describe("Certificate with its chain (PEM).")
        .meta({ examples: ["${file:/etc/headgate/console.pem}"] }),
    })
    .optional()
    .describe("Encryption of `listen`. Beyond loopback this or a `publicUrl` with https is required."),
  users: z
    .array(user)
    .default([])
    .describe("People who may sign in. On loopback without any, `headgate console link` prints a link that signs in."),
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

/** Why the console is not served; null where it is. */
export function consoleRefusal({ listen, console }: Placed): string | null {
  if (isLoopback(hostOf(console.listen ?? listen))) return null;
  if (console.users.length === 0 && !isLocalUrl(console.publicUrl))
    return "beyond loopback the console needs people who sign in: set operations.console.users";
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
  if (refusal !== null && (console.users.length > 0 || console.listen !== undefined))
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
