/** Servers that refuse, change or fall silent. */
import { createHash, randomBytes } from "node:crypto";
import { utimesSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { ConfigError, TransientError } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import { type Drop, fetchFile } from "#gateway/drops/drop.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { startFieldSftp } from "../support/field/sftp.ts";
import { testCertificate, testKey } from "./certificate.ts";
import { entryAt, type Field, listed, never, openFtp, openSftp } from "./field.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function opened(field: Promise<Field>): Promise<Field> {
  const open = await field;
  closing.push(() => open.close());
  return open;
}

async function drop(settings: Record<string, unknown>): Promise<Drop> {
  const made = await createDrop(dropOptions.parse({ name: "far", username: "u", password: "p", ...settings }), {
    log: silentLog,
  });
  closing.push(() => made.close());
  return made;
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.unreachable("it should have failed"),
    (thrown: unknown) => thrown,
  );
}

describe("host keys of SFTP servers", () => {
  test("an unknown key is refused, and the message shows it with the line to add", async () => {
    const field = await opened(openSftp({ hostKeys: [] }));
    const failure = await failureOf(listed(field.drop));
    expect(failure).toBeInstanceOf(ConfigError);
    expect(failure).toMatchObject({
      code: "HG-DROP-004",
      message: expect.stringMatching(/presents the host key SHA256:[A-Za-z0-9+/]{43}, which is not pinned/),
      hint: expect.stringMatching(/add under hostKeys of this drop: - "SHA256:[A-Za-z0-9+/]{43}"$/),
    });
  });

  test("a changed key is refused, and the message names the pinned one", async () => {
    const pin = `SHA256:${"A".repeat(43)}`;
    const field = await opened(openSftp({ hostKeys: [pin] }));
    expect(await failureOf(listed(field.drop))).toMatchObject({
      code: "HG-DROP-004",
      message: expect.stringContaining(`pinned: ${pin}`),
    });
  });

  test("one of several pins is enough, so that the next key can be pinned beforehand", async () => {
    const field = await opened(openSftp());
    if (field.options.kind !== "sftp") return expect.unreachable();
    const { host, port, username, password, hostKeys } = field.options;
    const pins = [`SHA256:${"A".repeat(43)}=`, ...hostKeys];
    const other = await drop({ kind: "sftp", host, port, username, password, hostKeys: pins });
    expect(await listed(other)).toEqual([]);
  });

  test("a server that restarts with another key is refused at the next connection", async () => {
    const field = await opened(openSftp());
    if (field.options.kind !== "sftp") return expect.unreachable();
    const user = { username: "u", password: "p" };
    const first = await startFieldSftp({ root: field.root, ...user });
    const far = await drop({
      kind: "sftp",
      host: first.host,
      port: first.port,
      hostKeys: [first.hostKeyFingerprint],
    });
    expect(await listed(far)).toEqual([]);
    await first.close();
    const second = await startFieldSftp({ root: field.root, ...user, port: first.port });
    closing.push(() => second.close());
    // The first call may still find out that the old connection is gone.
    await expect
      .poll(() => failureOf(listed(far)))
      .toMatchObject({ code: "HG-DROP-004", message: expect.stringContaining(first.hostKeyFingerprint) });
  });
});

for (const [kind, open] of [
  ["SFTP", openSftp],
  ["FTP", openFtp("auto")],
] as const) {
  describe(`an ${kind} server`, () => {
    test("that refuses the password needs an operator", async () => {
      const field = await opened(open({ password: "wrong" }));
      const failure = await failureOf(listed(field.drop));
      expect(failure).toBeInstanceOf(ConfigError);
      expect(failure).toMatchObject({ code: "HG-DROP-003", message: expect.stringContaining("meter") });
    });

    test("that cuts the connection in the middle of a file is asked only for the rest", async () => {
      const field = await opened(open());
      const content = randomBytes(3_000_000);
      await field.write("a.bin", content);
      const entry = await entryAt(field.drop, "a.bin");
      const copy = join(field.outside, "copy");
      if (field.faults !== null) field.faults.cutAfterBytes = 1_500_000;
      const sha256 = createHash("sha256").update(content).digest("hex");
      expect(await fetchFile(field.drop, entry, copy, never)).toEqual({ bytes: 3_000_000, sha256 });
      expect((await readFile(copy)).equals(content)).toBe(true);
      expect(field.faults?.cutAfterBytes).toBeNull();
      expect(field.faults?.bytesSent).toBeLessThan(4_000_000);
    });

    test("that cuts before the first byte has its file restarted later", async () => {
      const field = await opened(open());
      await field.write("a.bin", Buffer.alloc(300_000, "x"));
      const entry = await entryAt(field.drop, "a.bin");
      if (field.faults !== null) field.faults.cutAfterBytes = 0;
      const fetched = fetchFile(field.drop, entry, join(field.outside, "copy"), never);
      expect(await failureOf(fetched)).toBeInstanceOf(TransientError);
      expect(await fetchFile(field.drop, entry, join(field.outside, "copy"), never)).toMatchObject({
        bytes: 300_000,
      });
    });

    test("that cuts, and meanwhile has another version, is not asked for the rest of it", async () => {
      const field = await opened(open());
      await field.write("a.bin", Buffer.alloc(3_000_000, "x"), new Date("2026-03-01T00:00:00Z"));
      const entry = await entryAt(field.drop, "a.bin");
      if (field.faults === null) return expect.unreachable();
      field.faults.cutAfterBytes = 1_500_000;
      field.faults.onCut = () => {
        const later = new Date("2026-03-01T01:00:00Z");
        writeFileSync(join(field.root, "a.bin"), Buffer.alloc(3_000_000, "y"));
        utimesSync(join(field.root, "a.bin"), later, later);
      };
      const fetched = failureOf(fetchFile(field.drop, entry, join(field.outside, "copy"), never));
      expect(await fetched).toMatchObject({ code: "HG-DROP-008" });
    });

    test("that falls silent is given up after the data deadline, and used again when it responds", async () => {
      const field = await opened(open({ timeouts: { data: "2s" } }));
      expect(await listed(field.drop)).toEqual([]);
      if (field.faults !== null) field.faults.silent = true;
      const failure = await failureOf(listed(field.drop));
      expect(failure).toBeInstanceOf(TransientError);
      expect(failure).toMatchObject({ code: "HG-DROP-001" });
      if (field.faults !== null) field.faults.silent = false;
      expect(await listed(field.drop)).toEqual([]);
    });

    test("that is not running cannot be reached, and the message names it", async () => {
      const far = await drop({ kind: kind.toLowerCase(), host: "127.0.0.1", port: await freePort() });
      const failure = await failureOf(listed(far));
      expect(failure).toBeInstanceOf(TransientError);
      expect(failure).toMatchObject({ code: "HG-DROP-001", message: expect.stringContaining("127.0.0.1:") });
    });

    test("that accepts and then stays silent is given up after the connect deadline", async () => {
      const port = await startMute();
      const far = await drop({ kind: kind.toLowerCase(), host: "127.0.0.1", port, timeouts: { connect: "150ms" } });
      expect(await failureOf(listed(far))).toMatchObject({ code: "HG-DROP-001" });
    });

    test("that is still connecting does not keep the drop from closing", async () => {
      const far = await drop({ kind: kind.toLowerCase(), host: "127.0.0.1", port: await startMute() });
      const failing = failureOf(listed(far));
      await far.close();
      expect(await failing).toBeInstanceOf(TransientError);
    });

    test("loses its connections after they were unused for a while", async () => {
      const field = await opened(open({ timeouts: { idle: "20ms" } }));
      await listed(field.drop);
      expect(field.connections()).toBe(1);
      await expect.poll(() => field.connections()).toBe(0);
      expect(await listed(field.drop)).toEqual([]);
    });
  });
}

describe("FTP with explicit TLS", () => {
  const tls = { tls: { key: testKey, cert: testCertificate } };

  test("works with a trusted certificate", async () => {
    const field = await opened(openFtp("auto", tls)({ tls: "explicit", ca: testCertificate }));
    await field.write("a.csv", "content");
    const entry = await entryAt(field.drop, "a.csv");
    expect(await listed(field.drop)).toEqual([entry]);
    expect(await fetchFile(field.drop, entry, join(field.outside, "copy"), never)).toMatchObject({
      bytes: 7,
    });
  });

  test("fails with an untrusted certificate", async () => {
    const field = await opened(openFtp("auto", tls)({ tls: "explicit" }));
    const failure = await failureOf(listed(field.drop));
    expect(failure).toBeInstanceOf(ConfigError);
    expect(failure).toMatchObject({ code: "HG-DROP-011" });
  });

  test("does not fall back to no encryption", async () => {
    const field = await opened(openFtp("auto")({ tls: "explicit", ca: testCertificate }));
    expect(await failureOf(listed(field.drop))).toMatchObject({ code: "HG-DROP-001" });
  });
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function startMute(): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
  });
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return listening(server);
}
