/** Settings of the address on which a server listens, and of its encryption. */
import { z } from "zod";

/** `host:port`; port 0 takes any free one. */
export const listenAddress = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$/, "expected host:port, such as 127.0.0.1:9464");

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/;

/** Reached from this machine alone. `host`: as in a URL, IPv6 in brackets. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/** The host of `host:port`. */
export function hostOf(address: string): string {
  return address.replace(/:\d+$/, "");
}

/** Key and certificate of a server; `name` is that of the files in the examples. */
export function tlsPair(name: string) {
  return z.strictObject({
    key: z
      .string()
      .min(1)
      .describe("Private key (PEM).")
      .meta({ secret: true, examples: [`\${file:/etc/headgate/${name}.key}`] }),
    cert: z
      .string()
      .min(1)
      .describe("Certificate with its chain (PEM).")
      .meta({ examples: [`\${file:/etc/headgate/${name}.pem}`] }),
  });
}
