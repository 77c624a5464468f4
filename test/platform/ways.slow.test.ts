/** The same files by each of the ways into the hub, from the sender's call to the stored readings. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { Client } from "basic-ftp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findReadings } from "#gateway/spool/search.ts";
import { testCertificate, testKey } from "../drops/certificate.ts";
import { temporaryDirectory } from "../hub/fixture.ts";
import { portOf, sftpSender } from "../hub/transfer/sender.ts";
import { workbook, zip } from "./contents.ts";
import { type PlatformRig, standardCsv, startRig } from "./rig.ts";

const DATE = "2026-03-01T00:00:00Z";
const METRICS_TOKEN = "a token of sixteen characters";
const PASSIVE_PORTS = "42500-42600";

let rig: PlatformRig;
let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  folder = await temporaryDirectory();
  const [cert, key, path] = ["cert", "key", "transfer"].map((name) => join(folder.path, name));
  await writeFile(cert ?? "", testCertificate);
  await writeFile(key ?? "", testKey);
  const listen = "127.0.0.1:0";
  rig = await startRig({
    metrics: { listen: "127.0.0.1:0", token: METRICS_TOKEN },
    transfer: { path, sftp: { listen }, ftp: { listen, passivePorts: PASSIVE_PORTS, tls: { cert, key } } },
  });
});
afterAll(async () => {
  await rig.close();
  await folder.remove();
});

type Content = string | Uint8Array<ArrayBuffer>;

const servers = () => ({ transfer: () => rig.platform().transfer });

async function byFtp(name: string, content: Content, secure: boolean): Promise<void> {
  const client = new Client();
  try {
    const port = portOf(rig.platform().transfer?.ftp);
    const secureOptions = { rejectUnauthorized: false };
    await client.access({
      host: "127.0.0.1",
      port,
      user: "pusher",
      password: "pusher-password",
      secure,
      secureOptions,
    });
    await client.uploadFrom(Readable.from([Buffer.from(content)]), name);
  } finally {
    client.close();
  }
}

interface Way {
  readonly via: string;
  readonly words: string;
  readonly ingestionType: string;
  /** `token`: of the trigger. */
  send(name: string, content: Content, token: string): Promise<void>;
}

const WAYS: readonly Way[] = [
  {
    via: "storage",
    words: "by upload",
    ingestionType: "UploadInStorage",
    send: async (name, content) => void (await rig.store(name, content)),
  },
  {
    via: "generic",
    words: "by custom push",
    ingestionType: "SendViaHttp",
    async send(name, content, token) {
      const raw = typeof content === "string" ? content : Buffer.from(content);
      await rig.ok("POST", `/push/api/generic/${token}`, { raw, query: { filename: name } });
    },
  },
  {
    via: "sftp",
    words: "by SFTP",
    ingestionType: "SendViaFtp",
    async send(name, content) {
      const sender = await sftpSender(servers());
      await sender.put(`/${name}`, Buffer.from(content));
      sender.end();
    },
  },
  { via: "ftp", words: "by FTP", ingestionType: "SendViaFtp", send: (name, content) => byFtp(name, content, false) },
  { via: "ftps", words: "by FTPS", ingestionType: "SendViaFtp", send: (name, content) => byFtp(name, content, true) },
];

const VENDOR = {
  delimiter: ";",
  timeZone: "UTC",
  date: { column: "when", format: "dd.MM.yyyy HH:mm" },
  values: [{ column: "energy", target: { sourceSerialNumber: "{meter}", mappingConfig: "kWh" } }],
};

interface Format {
  readonly name: string;
  readonly end: string;
  readonly trigger: object;
  content(serial: string, value: number): Content | Promise<Content>;
}

const FORMATS: readonly Format[] = [
  {
    name: "a standard CSV",
    end: ".csv",
    trigger: { mapping: "standard" },
    content: (serial, value) => standardCsv(serial, DATE, value),
  },
  {
    name: "a workbook",
    end: ".xlsx",
    trigger: { mapping: "standard" },
    content: (serial, value) =>
      workbook([
        ["date", "value", "source_serial_number", "mapping_config"],
        [DATE, value, serial, "kWh"],
      ]),
  },
  {
    name: "a vendor's CSV",
    end: ".txt",
    trigger: { mapping: "delimited", metadata: VENDOR },
    content: (serial, value) => `when;meter;energy\n01.03.2026 00:00;${serial};${value}\n`,
  },
  {
    name: "a ZIP",
    end: ".zip",
    trigger: { mapping: "standard" },
    content: (serial, value) => zip({ [`${serial}-inside.csv`]: standardCsv(serial, DATE, value) }),
  },
];

interface Shown {
  readonly id: number;
  readonly fileName: string;
}

/** The file once it has arrived. */
async function arrived(name: string): Promise<number> {
  const found = async () => ((await rig.get("/storage", { FileName: name })) as Shown[])[0]?.id ?? 0;
  await expect.poll(found).toBeGreaterThan(0);
  return await found();
}

/** The operation and the sender of the reading, from the row that it was mapped from. */
async function tracedFrom(sourceSerialNumber: string): Promise<readonly [string | undefined, string | undefined]> {
  const fields = { sourceSerialNumber, mappingConfig: "kWh" };
  const query = { fields, atMs: Date.parse(DATE) };
  const found = () => Array.fromAsync(findReadings(join(rig.directory, "spool"), query));
  // A segment that is moved to those that are kept is in neither place for a moment.
  await expect.poll(found).toMatchObject([{ row: 2, value: 1.25 }]);
  const [reading] = await found();
  const { ledger } = rig.platform().gateway ?? {};
  const [file] = (await ledger?.trace(reading?.runId ?? "")) ?? [];
  const [traced] = file?.runs ?? [];
  return [traced?.batches[0]?.operationId, traced?.run.binding.sender];
}

describe.each(WAYS)("by $via", ({ via, words, ingestionType, send }) => {
  test.each(FORMATS)("$name becomes a stored reading that is traced to its file and sender", async (format) => {
    const serial = `${via}-${format.end.slice(1)}`;
    const variableId = await rig.variable(serial);
    const pattern = { filterType: "StartsWith", value: serial };
    const triggerId = await rig.post("/fileTrigger", {
      name: serial,
      ingestionType,
      fileNamePatternMatches: [pattern],
      ...format.trigger,
    });
    const { token } = await rig.get(`/fileTrigger/${triggerId}`);
    const name = `${serial}${format.end}`;
    await send(name, await format.content(serial, 1.25), token);
    const id = await arrived(name);
    const file = await rig.became(id, "stored");
    expect(file).toMatchObject({ via, reason: null, run: expect.any(String) });
    expect(file["createdBy"]).toBe(via === "sftp" || via.startsWith("ftp") ? "pusher" : "manager");
    expect(Object.values(await rig.values(variableId))).toEqual([1.25]);
    const [operationId, sender] = await tracedFrom(serial);
    expect(sender).toBe(`${file["createdBy"]}, ${words} (stored file ${id})`);
    const trigger = { id: triggerId, name: serial };
    const origin = { id, fileName: name, via, createdBy: file["createdBy"], trigger };
    expect(await rig.get(`/operations/${operationId}`)).toMatchObject({ status: "stored", file: origin });
  });

  test("a file that no trigger claims, and a broken one, are shown as such", async () => {
    const broken = `broken-${via}.csv`;
    const pattern = { filterType: "StartsWith", value: "broken" };
    const body = { name: broken, ingestionType, fileNamePatternMatches: [pattern], mapping: "standard" };
    const { token } = await rig.get(`/fileTrigger/${await rig.post("/fileTrigger", body)}`);
    await send(broken, standardCsv("none", DATE, "many"), token);
    const file = await rig.became(await arrived(broken), "quarantined");
    expect(file["reason"]).toMatch(/^HG-MAP-\d+: .*row 2/);
    // A push in the sender's own format names its trigger by the token.
    if (via === "generic") return;
    await send(`nobody-${via}.csv`, standardCsv("none", DATE, 1), token);
    const unclaimed = await rig.became(await arrived(`nobody-${via}.csv`), "unclaimed");
    expect(unclaimed).toMatchObject({ run: null, reason: expect.stringContaining("no trigger claims it") });
  });
});

describe("what the hub shows of its gateway", () => {
  const asked = async (path: string) => {
    const url = `${rig.platform().metricsUrl}${path}`;
    expect((await fetch(url)).status).toBe(401);
    return await fetch(url, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
  };

  test("its metrics, added up by account, each once, with no name that an account chose", async () => {
    await rig.store("nobody.csv", "x");
    const text = await (await asked("/metrics")).text();
    const series = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    const names = series.map((line) => line.slice(0, line.lastIndexOf(" ")));
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
    const types = text.split("\n").filter((line) => line.startsWith("# TYPE"));
    expect(types.filter((line, at) => types.indexOf(line) !== at)).toEqual([]);
    expect(text).toMatch(/^headgate_hub_operations_pending \d+$/m);
    expect(text).toMatch(/^headgate_points_confirmed_total\{drop="account-1",service="account-1"\} [1-9]\d*$/m);
    expect(text).toMatch(/^headgate_poll_duration_seconds_bucket\{.*drop="account-2".*\} \d+$/m);
    expect(names.filter((name) => /trigger="|mapper="|account-\d+:\d/.test(name))).toEqual([]);
  });

  test("that files need a person: as a number to everyone, and with the reasons beside the metrics", async () => {
    const broken = await rig.store("broken-at-last.csv", standardCsv("none", DATE, "many"));
    await rig.became(broken, "quarantined");
    const files = async () => (await rig.get("/health")).files;
    await expect.poll(files).toMatchObject({ status: "ready", needAttention: expect.any(Number) });
    const { needAttention } = await files();
    expect(needAttention).toBeGreaterThan(0);
    expect(JSON.stringify(await rig.get("/health"))).not.toContain("broken");
    const ready = await asked("/health/ready");
    expect(ready.status).toBe(200);
    const { parts } = (await ready.json()) as { parts: unknown[] };
    expect(parts).toContainEqual({
      part: "runs",
      ready: true,
      reason: expect.stringMatching(/^\d+ runs? needs? attention(, the latest)?: /),
    });
    await rig.ok("DELETE", "/storage", { query: { ids: broken } });
    await expect.poll(async () => (await files()).needAttention).toBe(needAttention - 1);
  });
});
