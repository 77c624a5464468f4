/** The FTP server of the hub, with and without TLS, and with clients that do not behave. */
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type AccessOptions, Client } from "basic-ftp";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { testCertificate, testKey } from "../../drops/certificate.ts";
import { startTestHub, type TestHub, temporaryDirectory } from "../fixture.ts";
import { type RawFtp, rawFtp, rawSender as signedIn } from "./raw-ftp.ts";
import { portOf, storedFiles } from "./sender.ts";

let hub: TestHub;
let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
const clients: Client[] = [];
const raws: RawFtp[] = [];

beforeAll(async () => {
  folder = await temporaryDirectory();
  const [cert, key] = [join(folder.path, "cert"), join(folder.path, "key")];
  await writeFile(cert, testCertificate);
  await writeFile(key, testKey);
  hub = await startTestHub({
    transfer: {
      ftp: { listen: "127.0.0.1:0", passivePorts: "42000-42400", tls: { cert, key, listen: "127.0.0.1:0" } },
      attempts: 3,
    },
    limits: { file: "500KB" },
  });
});
afterAll(async () => {
  await hub.close();
  await folder.remove();
});
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
  for (const raw of raws.splice(0)) raw.close();
});

const text = (content: string) => Readable.from([Buffer.from(content)]);
const named = async (part: string) => (await storedFiles(hub)).filter(({ fileName }) => fileName.includes(part));

async function connected(more: AccessOptions & { implicit?: boolean } = {}): Promise<Client> {
  const client = new Client();
  clients.push(client);
  const port = portOf(more.implicit === true ? hub.transfer()?.ftps : hub.transfer()?.ftp);
  const secureOptions = { rejectUnauthorized: false };
  const own = { host: "127.0.0.1", port, user: "pusher", password: "pusher-password", secureOptions };
  await client.access({ ...own, ...more, ...(more.implicit === true ? { secure: "implicit" as const } : {}) });
  return client;
}

const opened = async (raw: Promise<RawFtp>) => {
  raws.push(await raw);
  return await raw;
};
const rawClient = () => opened(rawFtp(portOf(hub.transfer()?.ftp)));
const rawSender = () => opened(signedIn(portOf(hub.transfer()?.ftp)));

describe.each([
  ["ftp", {}],
  ["ftps", { secure: true }],
  ["ftps", { implicit: true }],
])("by %s %o", (via, access) => {
  const tag = JSON.stringify(access).replace(/\W/g, "");

  test("a file is stored and listed", async () => {
    const client = await connected(access);
    await client.uploadFrom(text("1;2\n"), `a${tag}.csv`);
    expect(await named(`a${tag}.csv`)).toEqual([{ fileName: `a${tag}.csv`, via, size: 4 }]);
    expect(await client.size(`a${tag}.csv`)).toBe(4);
    expect((await client.list()).find(({ name }) => name === `a${tag}.csv`)).toMatchObject({ size: 4 });
    await client.remove(`a${tag}.csv`);
    expect((await client.list()).map(({ name }) => name)).not.toContain(`a${tag}.csv`);
    await expect(client.size(`a${tag}.csv`)).rejects.toThrow("no such file");
  });

  test("a sub-folder is a part of the name, and a temporary name is none", async () => {
    const client = await connected(access);
    await client.ensureDir(`/in${tag}/day`);
    await client.uploadFrom(text("x"), "b.part");
    expect(await named(`in${tag}`)).toEqual([]);
    await client.rename("b.part", "b.csv");
    expect(await named(`in${tag}`)).toEqual([{ fileName: `in${tag}/day/b.csv`, via, size: 1 }]);
  });
});

describe("an upload", () => {
  test("that broke off is continued by REST and by APPE", async () => {
    const raw = await rawSender();
    const data = await raw.open();
    await raw.say("STOR rest.csv", "150");
    data.write("0123");
    await expect.poll(() => sizeOf("rest.csv")).toBe(4);
    raw.socket.resetAndDestroy();
    const next = await rawSender();
    expect(await named("rest.csv")).toEqual([]);
    const second = await next.open();
    await next.say("REST 2", "350");
    await next.say("STOR rest.csv", "150");
    second.write("xx");
    await expect.poll(() => sizeOf("rest.csv")).toBe(4);
    second.resetAndDestroy();
    await next.until("426");
    const third = await next.open();
    await next.say("APPE rest.csv", "150");
    third.end("yz");
    await next.until("226");
    expect(await named("rest.csv")).toEqual([{ fileName: "rest.csv", via: "ftp", size: 6 }]);
    await next.say("REST 9", "350");
    await next.open();
    await next.say("STOR other.csv", "550");
  });

  test("of a client that ends in the middle is no file", async () => {
    const raw = await rawSender();
    const data = await raw.open();
    await raw.say("STOR killed.csv", "150");
    data.write("begun");
    await expect.poll(() => sizeOf("killed.csv")).toBe(5);
    // As when its process is killed: both connections end.
    raw.socket.end();
    data.end();
    await expect.poll(() => raw.socket.destroyed).toBe(true);
    const next = await rawSender();
    expect(await next.say("SIZE killed.csv", "213")).toMatch("213 5");
    expect(await named("killed.csv")).toEqual([]);
  });

  test("of a client that says good-bye before the answer is a file", async () => {
    const raw = await rawSender();
    const data = await raw.open();
    await raw.say("STOR hasty.csv", "150");
    raw.socket.write("QUIT\r\n");
    raw.socket.end();
    data.end("hasty");
    await expect.poll(() => named("hasty.csv")).toHaveLength(1);
  });

  test("is aborted by ABOR, also with the bytes of Telnet before it", async () => {
    const raw = await rawSender();
    await raw.open();
    await raw.say("STOR aborted.csv", "150");
    raw.socket.write(Buffer.from([0xff, 0xf4, 0xff, 0xf2]));
    await raw.say("ABOR", "426");
    await raw.say("NOOP", "200");
    expect(await named("aborted.csv")).toEqual([]);
  });

  test("that is too large is refused", async () => {
    const client = await connected();
    await expect(client.uploadFrom(Readable.from([Buffer.alloc(600_000)]), "large.bin")).rejects.toThrow();
    expect(await named("large")).toEqual([]);
  });

  test("in active mode goes to the client's own address only", async () => {
    const raw = await rawSender();
    const server = createServer((socket) => socket.end("active"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    await raw.say(`PORT 127,0,0,1,${port >> 8},${port & 255}`, "200");
    raw.socket.write("STOR active.csv\r\n");
    await raw.until("226");
    expect(await named("active.csv")).toHaveLength(1);
    await raw.say("PORT 10,0,0,1,200,1", "550");
    await raw.say("PORT 127,0,0,1,0,22", "550");
    await raw.say(`EPRT |1|127.0.0.1|${port}|`, "200");
    server.close();
  });
});

async function sizeOf(path: string): Promise<number> {
  const client = await connected();
  try {
    return await client.size(path).catch(() => -1);
  } finally {
    client.close();
  }
}

describe("refused are", () => {
  test("reading, and names that lead elsewhere", async () => {
    const raw = await rawSender();
    const data = await raw.open();
    data.end();
    await raw.say("STOR ../../outside.csv", "226");
    await raw.say("RETR outside.csv", "550");
    await raw.say("CWD ..", "250");
    expect(await raw.say("PWD", "257")).toMatch('257 "/"');
    await raw.say("CWD /etc", "550");
    await raw.say("MKD a\\b", "550");
    await raw.say("SITE CHMOD 777 outside.csv", "502");
  });

  test("commands before the sign-in, and unknown ones", async () => {
    const raw = await rawClient();
    for (const command of ["LIST", "STOR x", "EPSV", "MKD x", "SIZE x", "EXEC id"]) await raw.say(command, "530");
  });

  test("wrong passwords, and after some of them the connection", async () => {
    const raw = await rawClient();
    for (const code of ["530", "530", "421"]) {
      await raw.say("USER second", "331");
      await raw.say("PASS wrong-password", code);
    }
    await expect.poll(() => raw.socket.destroyed).toBe(true);
  });

  test("commands that follow AUTH in plain text", async () => {
    const raw = await rawClient();
    raw.socket.write("AUTH TLS\r\nUSER pusher\r\nPASS pusher-password\r\n");
    await raw.until("234");
    raw.socket.end();
    await expect.poll(() => raw.socket.destroyed).toBe(true);
    expect(raw.received()).not.toMatch(/331|230/);
  });

  test("lines without an end", async () => {
    const raw = await rawClient();
    raw.socket.write("x".repeat(20_000));
    await expect.poll(() => raw.socket.destroyed).toBe(true);
  });
});

test("with TLS required, nothing is sent without it", async () => {
  const options = hub.options.transfer?.ftp;
  const strict = await startTestHub({
    transfer: { ftp: { ...options, passivePorts: undefined, tls: { ...options?.tls, required: true } } },
  });
  try {
    const client = new Client();
    clients.push(client);
    const own = { host: "127.0.0.1", port: portOf(strict.transfer()?.ftp), user: "pusher" };
    await expect(client.access({ ...own, password: "pusher-password" })).rejects.toThrow("AUTH TLS");
    const secured = { ...own, password: "pusher-password", secure: true, secureOptions: { rejectUnauthorized: false } };
    await client.access(secured);
    await client.uploadFrom(text("x"), "x.csv");
    expect(await storedFiles(strict)).toEqual([{ fileName: "x.csv", via: "ftps", size: 1 }]);
    await expect(client.send("PROT C")).rejects.toThrow("TLS");
  } finally {
    await strict.close();
  }
});
