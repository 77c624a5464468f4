/** A real SMTP server, the settings of a hub that sends by it, and what came. */
import { expect } from "vitest";
import { testCertificate } from "../../drops/certificate.ts";
import { MAIL_USER, MailServer } from "../../operations/mail-server.ts";
import { linkIn, type ReadMail, readMail } from "./mail-parts.ts";

export type MailBox = Awaited<ReturnType<typeof openMailBox>>;

export async function openMailBox(publicUrl = "https://hub.example.com") {
  const server = await MailServer.start();
  const to = (address: string): readonly ReadMail[] =>
    server.mails.filter((mail) => mail.to.includes(address)).map((mail) => readMail(mail.text));
  /** The last mail to this address that has a link to this page. */
  const linkTo = async (address: string, path: string): Promise<string> => {
    const isThere = (mail: ReadMail) => mail.text.includes(`${path}?`) || mail.text.includes(`${path}\n`);
    await expect.poll(() => to(address).some(isThere)).toBe(true);
    return linkIn(to(address).findLast(isThere) as ReadMail, path);
  };
  return {
    options: {
      publicUrl,
      mail: {
        smtp: { host: "127.0.0.1", port: server.port, ca: testCertificate, ...MAIL_USER },
        from: "Metering <metering@example.com>",
        backoff: "20ms",
        backoffMax: "50ms",
      },
    },
    mails: server.mails,
    to,
    linkTo,
    /** The temporary password of the last mail to this address. */
    passwordOf: (address: string): string => {
      const texts = to(address).map(({ text }) => /Temporary password: (\S+)/.exec(text)?.[1]);
      return texts.findLast((password) => password !== undefined) ?? "";
    },
    close: () => server.close(),
  };
}

/** For a hub of tests, which is at another address than its links say. */
export function pathOf(link: string): string {
  const { pathname, search } = new URL(link);
  return pathname + search;
}

export function tokenOf(link: string): string {
  return new URL(link).searchParams.get("token") ?? "";
}
