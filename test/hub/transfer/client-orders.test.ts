/** The commands that FileZilla, WinSCP and loggers send, in their order. */
import { once } from "node:events";
import type { Attributes, ClientChannel, InputAttributes } from "ssh2";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startTestHub, type TestHub } from "../fixture.ts";
import { type RawFtp, rawSender } from "./raw-ftp.ts";
import { portOf, type SftpSender, sftpSender, storedFiles } from "./sender.ts";

let hub: TestHub;
const listen = "127.0.0.1:0";
beforeAll(async () => {
  hub = await startTestHub({ transfer: { sftp: { listen }, ftp: { listen } } });
});
afterAll(() => hub.close());

const sizesOf = async (name: string) =>
  (await storedFiles(hub)).filter(({ fileName }) => fileName === name).map(({ size }) => size);

describe("by SFTP", () => {
  let sender: SftpSender;
  afterEach(() => sender.end());

  const asked = <T>(call: (done: (fault: Error | undefined | null, value: T) => void) => unknown) =>
    new Promise<T>((resolve, reject) => {
      call((fault, value) => (fault ? reject(fault) : resolve(value)));
    });
  const realpath = (path: string) => asked<string>((done) => sender.sftp.realpath(path, done));
  const listed = (path: string) =>
    asked<{ filename: string; longname: string; attrs: Attributes }[]>((done) => sender.sftp.readdir(path, done));
  const setStatus = (path: string, attributes: InputAttributes) =>
    asked<void>((done) => sender.sftp.setstat(path, attributes, done));

  test("FileZilla looks around, uploads, sets the time, and finds both in the listing", async () => {
    sender = await sftpSender(hub);
    expect(await realpath(".")).toBe("/");
    await sender.call("mkdir", "/filezilla");
    expect(await realpath("filezilla/.")).toBe("/filezilla");
    await expect(sender.stat("/filezilla/a.csv")).rejects.toThrow("no such file");
    const handle = await sender.open("/filezilla/a.csv", "w");
    await sender.write(handle, "1;2\n", 0);
    await sender.close(handle);
    await setStatus("/filezilla/a.csv", { atime: 1_700_000_000, mtime: 1_700_000_000 });
    expect(await listed("/filezilla")).toMatchObject([
      {
        filename: "a.csv",
        longname: expect.stringMatching(/^-.* 4 .* a\.csv$/),
        attrs: { size: 4, mtime: 1_700_000_000 },
      },
    ]);
    expect(await sizesOf("filezilla/a.csv")).toEqual([4]);
  });

  test("scp ends its channel, and gets the exit status 0", async () => {
    sender = await sftpSender(hub);
    const channel = await asked<ClientChannel>((done) => sender.client.subsys("sftp", done));
    const statuses: unknown[] = [];
    channel.on("exit", (status: unknown) => statuses.push(status));
    const closed = once(channel.resume(), "close");
    channel.end();
    await closed;
    expect(statuses).toEqual([0]);
  });

  test.each([
    ["at its offset", "r+", 6],
    ["by appending", "a", 0],
  ])("an upload that broke off is resumed %s after its size was asked for", async (_words, flags, position) => {
    const name = `resumed-${flags === "a" ? "a" : "r"}.csv`;
    sender = await sftpSender(hub);
    const handle = await sender.open(`/${name}`, "w");
    await sender.write(handle, "begun;", 0);
    sender.client.destroy();
    sender = await sftpSender(hub);
    expect(await sender.stat(`/${name}`)).toMatchObject({ size: 6 });
    const rest = await sender.open(`/${name}`, flags);
    await sender.write(rest, "ended\n", position);
    await sender.close(rest);
    expect(await sizesOf(name)).toEqual([12]);
  });

  test("an upload that broke off is cut by its size, and written over by opening it anew", async () => {
    sender = await sftpSender(hub);
    const handle = await sender.open("/cut.csv", "w");
    await sender.write(handle, "0123456789", 0);
    sender.client.destroy();
    sender = await sftpSender(hub);
    await setStatus("/cut.csv", { size: 4 });
    expect(await sender.stat("/cut.csv")).toMatchObject({ size: 4 });
    await sender.put("/cut.csv", "ab");
    expect(await sizesOf("cut.csv")).toEqual([2]);
  });

  test("WinSCP uploads under another name, removes what is there, renames, and sets time and mode", async () => {
    sender = await sftpSender(hub);
    for (const content of ["first", "second"]) {
      await sender.put("/winscp.csv.filepart", content);
      await sender.call("unlink", "/winscp.csv").catch(() => null); // Nothing is there at first.
      await sender.call("rename", "/winscp.csv.filepart", "/winscp.csv");
      await setStatus("/winscp.csv", { mode: 0o644, mtime: 1_700_000_000, atime: 1_700_000_000 });
    }
    expect(await sizesOf("winscp.csv")).toEqual([5, 6]);
    expect(await sender.stat("/winscp.csv")).toMatchObject({ size: 6, mtime: 1_700_000_000 });
  });

  test("a rename replaces a taken file and an unfinished one of the name", async () => {
    sender = await sftpSender(hub);
    await sender.put("/over.csv", "1");
    for (const content of ["22", "333"]) {
      await sender.put("/over.csv.part", content);
      await sender.call("rename", "/over.csv.part", "/over.csv");
    }
    expect(await sizesOf("over.csv")).toEqual([1, 2, 3]);
    const handle = await sender.open("/over-unfinished.csv", "w");
    await sender.write(handle, "begun", 0);
    await sender.put("/x.part", "4444");
    await sender.call("rename", "/x.part", "/over-unfinished.csv");
    await expect(sender.close(handle)).rejects.toThrow("another file got this name");
    expect(await sizesOf("over-unfinished.csv")).toEqual([4]);
  });
});

describe("by FTP", () => {
  let raw: RawFtp;
  afterEach(() => raw.close());

  const sender = async () => {
    raw = await rawSender(portOf(hub.transfer()?.ftp));
  };
  async function transferred(command: string, content: string): Promise<void> {
    const data = await raw.open();
    await raw.say(command, "150");
    data.end(content);
    await raw.until("226");
  }
  async function listedBy(command: string): Promise<string> {
    const data = await raw.open();
    let text = "";
    data.on("data", (bytes) => {
      text += bytes.toString();
    });
    raw.socket.write(`${command}\r\n`);
    await raw.until("226");
    await expect.poll(() => data.readableEnded).toBe(true);
    return text;
  }

  test("FileZilla looks around, uploads, sets the time, and finds both in the listing", async () => {
    await sender();
    expect(await raw.say("SYST", "215")).toContain("UNIX");
    const features = await raw.say("FEAT", "211");
    for (const feature of ["MLST", "MFMT", "REST STREAM", "UTF8", "EPSV", "SIZE"]) expect(features).toContain(feature);
    await raw.say("CLNT FileZilla", "502");
    await raw.say("OPTS UTF8 ON", "200");
    expect(await raw.say("PWD", "257")).toContain('"/"');
    await raw.say("CWD /größe", "550");
    await raw.say("MKD größe", "257");
    await raw.say("CWD größe", "250");
    expect(await raw.say("PWD", "257")).toContain('"/größe"');
    await raw.say("TYPE I", "200");
    expect(await listedBy("MLSD")).toBe("");
    await transferred("STOR a.csv", "1;2\n");
    await raw.say("MFMT 20231114221320 a.csv", "213");
    expect(await listedBy("MLSD")).toBe("type=file;size=4;modify=20231114221320; a.csv\r\n");
    expect(await listedBy("LIST -a")).toMatch(/^-.* 4 .* a\.csv\r\n$/);
    expect(await sizesOf("größe/a.csv")).toEqual([4]);
  });

  test("the data goes to the port of PASV, too", async () => {
    await sender();
    const [, high, low] = /\(127,0,0,1,(\d+),(\d+)\)/.exec(await raw.say("PASV", "227")) ?? [];
    const data = raw.connect(Number(high) * 256 + Number(low));
    await raw.say("STOR pasv.csv", "150");
    data.end("1");
    await raw.until("226");
    expect(await sizesOf("pasv.csv")).toEqual([1]);
  });

  test.each([
    ["APPE", [], 6],
    ["STOR", ["REST 6"], 6],
    ["STOR", ["REST 3"], 3],
    ["STOR", ["REST 0"], 0],
  ])("an upload that broke off is resumed by %s %j", async (command, before, from) => {
    const name = `${command}-${from}.csv`;
    await sender();
    const data = await raw.open();
    await raw.say(`STOR ${name}`, "150");
    data.write("begun;");
    await expect.poll(() => sizeFromOutside(name)).toBe(6);
    raw.close();
    await sender();
    await raw.say("TYPE I", "200");
    expect(await raw.say(`SIZE ${name}`, "213")).toContain("213 6");
    const rest = await raw.open();
    for (const line of before) await raw.say(line, "350");
    await raw.say(`${command} ${name}`, "150");
    rest.end("ended\n");
    await raw.until("226");
    expect(await sizesOf(name)).toEqual([from + 6]);
  });

  async function sizeFromOutside(name: string): Promise<number> {
    const other = await rawSender(portOf(hub.transfer()?.ftp));
    try {
      return Number(/213 (\d+)/.exec(await other.say(`SIZE ${name}`, "213"))?.[1]);
    } finally {
      other.close();
    }
  }

  test("a logger renames from a temporary name, over the file of the last time", async () => {
    for (const content of ["1", "22", "333"]) {
      await sender();
      await transferred("STOR logger.tmp", content);
      await raw.say("RNFR logger.tmp", "350");
      await raw.say("RNTO logger.csv", "250");
      await raw.say("QUIT", "221");
    }
    expect(await sizesOf("logger.csv")).toEqual([1, 2, 3]);
    await sender();
    await raw.say("RNTO other.csv", "503");
    await raw.say("RNFR logger.csv", "350");
    await raw.say("RNTO other.csv", "550");
  });
});
