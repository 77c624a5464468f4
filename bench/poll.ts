/** Polls a drop twice and tells CPU seconds and peak memory: `poll.ts KIND ROOT ACCESS LEDGER|bare`. */
import { opendir, stat } from "node:fs/promises";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { Client } from "basic-ftp";
import ssh2 from "ssh2";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import { type DropOptions, dropOptions } from "#gateway/drops/options.ts";
import { Pickup } from "#gateway/drops/pickup.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { measure, peakMegabytes } from "./child.ts";
import type { FieldAnswer } from "./field-server.ts";

export interface PollAnswer {
  readonly first: number;
  readonly second: number;
  readonly peak: number;
}

const [kind = "local", root = "", accessText = "{}", ledgerPath = "bare"] = process.argv.slice(2);
const access = JSON.parse(accessText) as FieldAnswer;

// Processes of a bench are ended from outside, which writes no cache.
flushCompileCache();
const answer = ledgerPath === "bare" ? await bareListing() : await twoPolls();
process.stdout.write(`${JSON.stringify(answer)}\n`);
setInterval(() => {}, 60_000);

async function bareListing(): Promise<PollAnswer> {
  const work = { local: listLocally, sftp: listBySftp, ftp: listByFtp }[kind];
  if (work === undefined) throw new Error(`there is no kind ${kind}`);
  const { cpu } = await measure(work);
  return { first: cpu, second: 0, peak: peakMegabytes() };
}

async function listLocally(): Promise<void> {
  for await (const entry of await opendir(root)) await stat(join(root, entry.name));
}

async function listBySftp(): Promise<void> {
  const client = new ssh2.Client();
  await new Promise<void>((resolve, reject) => {
    client.on("error", reject).on("ready", () => {
      client.sftp((fault, sftp) => {
        if (fault) return reject(fault);
        sftp.readdir(".", (second) => (second ? reject(second) : resolve()));
      });
    });
    client.connect({ host: "127.0.0.1", port: access.port, username: "bench", password: "bench" });
  });
  client.end();
}

async function listByFtp(): Promise<void> {
  const client = new Client();
  await client.access({ host: "127.0.0.1", port: access.port, user: "bench", password: "bench" });
  await client.list();
  client.close();
}

async function twoPolls(): Promise<PollAnswer> {
  const options = optionsOf();
  const ledger = await openLedger({ kind: "sqlite", path: ledgerPath }, { clock: systemClock });
  const drop = await createDrop(options, { log: silentLog });
  const claim = async (arrivals: readonly { readonly id: number }[]) => {
    await Promise.all(arrivals.map(({ id }) => ledger.advanceArrival(id, "unmatched", "bench")));
  };
  const pickup = new Pickup({ drop, options, journal: ledger, claim, clock: systemClock });
  const { signal } = new AbortController();
  // Until every file was taken up.
  const first = await measure(async () => {
    for (let { left } = await pickup.poll(signal); left > 0; ) ({ left } = await pickup.takeLeft(signal));
  });
  const second = await measure(() => pickup.poll(signal));
  await drop.close();
  await ledger.close();
  return { first: first.cpu, second: second.cpu, peak: peakMegabytes() };
}

function optionsOf(): DropOptions {
  const settle = { observations: 1 };
  const server = {
    host: "127.0.0.1",
    port: access.port,
    username: "bench",
    password: "bench",
    settle,
  };
  if (kind === "sftp") return dropOptions.parse({ kind, name: "bench", ...server, hostKeys: [access.hostKey] });
  if (kind === "ftp") return dropOptions.parse({ kind, name: "bench", ...server });
  return dropOptions.parse({ kind: "local", name: "bench", path: root, settle });
}
