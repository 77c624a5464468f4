/** Sends single messages to an SMTP server. */
import { Socket } from "node:net";
import type { SendMailOptions } from "nodemailer";
import { wordsOf } from "../errors.ts";
import type { SmtpOptions } from "./options.ts";

/** For each step of the conversation. */
const STEP_MS = 10_000;

export interface Accepted {
  readonly accepted: readonly string[];
  readonly rejected: readonly string[];
}

/**
 * Resolves when the server took the message for one recipient at least. An aborted signal ends the connection, and
 * then it is not known whether the server took it.
 */
export async function sendBySmtp(
  options: SmtpOptions,
  message: SendMailOptions,
  signal?: AbortSignal,
): Promise<Accepted> {
  const { host, port, security, ca, username, password } = options;
  // Loaded for the first mail, since most processes send none and it takes memory.
  const { createTransport } = await import("nodemailer");
  signal?.throwIfAborted();
  const socket = new Socket();
  const transport = createTransport({
    host,
    port,
    socket,
    secure: security === "tls",
    requireTLS: security === "starttls",
    ignoreTLS: security === "none",
    tls: { ...(ca === undefined ? {} : { ca }), minVersion: "TLSv1.2" },
    ...(username === undefined || password === undefined ? {} : { auth: { user: username, pass: password } }),
    connectionTimeout: STEP_MS,
    greetingTimeout: STEP_MS,
    socketTimeout: STEP_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  // The transport listens only while it waits for the socket.
  socket.on("error", () => undefined);
  // It connects a socket that was destroyed while a name was resolved.
  socket.on("connect", () => void (signal?.aborted === true && socket.destroy()));
  const aborted = Promise.withResolvers<never>();
  const end = () => {
    socket.destroy();
    aborted.reject(new Error("the time for the message is over"));
  };
  signal?.addEventListener("abort", end, { once: true });
  try {
    const sending = transport.sendMail({ ...message, headers: { "Auto-Submitted": "auto-generated" } });
    const { accepted, rejected } = await Promise.race([sending, aborted.promise]);
    return { accepted, rejected };
  } finally {
    signal?.removeEventListener("abort", end);
    transport.close();
  }
}

/** Whether the server said that it will never take the message for this recipient. */
export function isRefusedForGood(thrown: unknown): boolean {
  if (typeof thrown !== "object" || thrown === null || !("rejected" in thrown)) return false;
  const { rejected } = thrown;
  const status = "responseCode" in thrown ? Number(thrown.responseCode) : 0;
  return Array.isArray(rejected) && rejected.length > 0 && status >= 500;
}

/** The server refuses this mail, for its recipient or its content, and may take others. */
export function isOfOneMail(thrown: unknown): boolean {
  if (typeof thrown !== "object" || thrown === null || !("command" in thrown && "responseCode" in thrown)) return false;
  const { command, responseCode } = thrown;
  // By 421 a server says that it closes.
  return (command === "RCPT TO" || command === "DATA") && Number(responseCode) > 0 && responseCode !== 421;
}

/** The words of a failed delivery, on one line and without the password of the server. */
export function smtpWords(thrown: unknown, { password }: SmtpOptions): string {
  const words = password === undefined ? wordsOf(thrown) : wordsOf(thrown).replaceAll(password, "[redacted]");
  return words.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
}
