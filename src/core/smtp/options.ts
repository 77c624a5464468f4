/** Settings of an SMTP server, the same for notifications of a gateway and mails of a hub. */
import { z } from "zod";

export const smtpFields = {
  host: z.string().min(1).describe("SMTP server."),
  port: z.int().min(1).max(65_535).default(587).describe("Its port; 465 is usual with `security: tls`."),
  security: z
    .enum(["starttls", "tls", "none"])
    .default("starttls")
    .describe(
      "starttls: nothing is sent before the connection is encrypted; tls: encrypted from the start; none: in " +
        "the clear, for a server on this machine. Certificates are verified.",
    ),
  ca: z
    .string()
    .optional()
    .describe("Certificates (PEM) to trust instead of the public ones.")
    .meta({ examples: ["${file:/etc/headgate/ca.pem}"] }),
  username: z.string().min(1).optional().describe("User of the server; without it there is no sign-in."),
  password: z.string().min(1).optional().describe("Password of this user.").meta({ secret: true }),
};

/** For `check` of an object with these fields. */
export const hasWholeSignIn = z.superRefine<object>((settings, context) => {
  const missing = ["username", "password"].filter((name) => Reflect.get(settings, name) === undefined);
  if (missing.length !== 1) return;
  context.addIssue({ code: "custom", path: missing, message: "username and password are needed together" });
});

export interface SmtpOptions {
  readonly host: string;
  readonly port: number;
  readonly security: "starttls" | "tls" | "none";
  readonly ca?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}
