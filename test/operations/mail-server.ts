/** A real SMTP server on loopback that keeps what it is given. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { testCertificate, testKey } from "../drops/certificate.ts";

export interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  readonly text: string;
  readonly user: string | null;
  readonly isEncrypted: boolean;
}

export const MAIL_USER = { username: "gateway", password: "mail-password-1" };

export class MailServer {
  readonly mails: Mail[] = [];
  readonly #server: SMTPServer;

  private constructor(options: SMTPServerOptions) {
    this.#server = new SMTPServer({
      key: testKey,
      cert: testCertificate,
      authMethods: ["PLAIN", "LOGIN"],
      onAuth: ({ username, password }, _session, done) => {
        if (username === MAIL_USER.username && password === MAIL_USER.password) done(null, { user: username });
        else done(new Error(`no such user or password ${password}`));
      },
      onRcptTo: ({ address }, _session, done) =>
        address.startsWith("refused") ? done(new Error("no such mailbox")) : done(),
      onData: (stream, session, done) => {
        let text = "";
        stream.on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        stream.on("end", () => {
          const { mailFrom, rcptTo } = session.envelope;
          this.mails.push({
            from: mailFrom === false ? "" : mailFrom.address,
            to: rcptTo.map(({ address }) => address),
            text,
            user: typeof session.user === "string" ? session.user : null,
            isEncrypted: session.secure,
          });
          done();
        });
      },
      ...options,
    });
    // A client that does not trust the certificate breaks its connection.
    this.#server.on("error", () => undefined);
  }

  static async start(options: SMTPServerOptions = {}, port = 0): Promise<MailServer> {
    const server = new MailServer(options);
    server.#server.listen(port, "127.0.0.1");
    await once(server.#server.server, "listening");
    return server;
  }

  get port(): number {
    return (this.#server.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }
}
