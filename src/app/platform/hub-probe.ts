/** `headgate check` of a hub.yaml: what the hub would meet at its start. Neither starts the hub nor disturbs one. */
import { existsSync } from "node:fs";
import { access, constants } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { HeadgateError, systemCode, wordsOf } from "#core/errors.ts";
import { hostOf, isLoopback } from "#core/listen-address.ts";
import { createProviderClient, redirectUriOf } from "#core/sign-on/provider.ts";
import { tryREngine } from "#hub/calculated/engines/r/r-engine.ts";
import { NO_PLACE, storedFilesFolder } from "#hub/gateway-places.ts";
import type { HubOptions } from "#hub/options.ts";
import { refuseUnknownGrants } from "#hub/sign-on/known-accounts.ts";
import type { OidcProvider } from "#hub/sign-on/options.ts";
import { readStore } from "#hub/store/open.ts";
import { isoOfMs } from "#hub/time.ts";
import { refuseRepeatedIds, refuseUnknownAccounts } from "#hub/token/seed.ts";

export interface HubFinding {
  readonly part: "hub" | "store" | "stored files";
  /** `failed` makes `check` exit 1. */
  readonly level: "ok" | "warning" | "failed";
  readonly about?: string;
  readonly what: string;
  readonly hint?: string | undefined;
}

export const HUB_PARTS: readonly HubFinding["part"][] = ["hub", "store", "stored files"];
const ANSWER_MS = 5_000;

/** Returns false when the store cannot be read, on which everything else depends. */
export async function probeHub(options: HubOptions, say: (finding: HubFinding) => void): Promise<boolean> {
  const { isRead, accountIds } = await probeStore(options, say);
  if (isRead) say(identities(options, accountIds));
  for (const [about, address] of addresses(options)) say(await addressFinding(about, address));
  for (const finding of unencrypted(options)) say(finding);
  for (const provider of options.signIn.oidc) say(await providerFinding(provider, options));
  say(await filesFinding(options));
  say(await scriptsFinding(options));
  return isRead;
}

async function probeStore({ store }: HubOptions, say: (finding: HubFinding) => void) {
  const part = "store";
  const place = "path" in store ? store.path : `the schema ${store.schema} of the PostgreSQL database`;
  try {
    const accountIds = await readStore(store, ({ identity }) => identity.accountIds());
    const what =
      accountIds === null
        ? `${place} does not exist yet; the hub makes it when it starts`
        : `${place} can be read, and has ${counted(accountIds.length, "account")}`;
    const fault = accountIds === null && "path" in store ? await unwritable(store.path) : null;
    if (fault === null) say({ part, level: "ok", what });
    else say({ part, level: "failed", what: fault, hint: "Correct `store.path`, or give this user the right." });
    if (accountIds !== null) for (const finding of await pausedSubscriptions(store)) say(finding);
    return { isRead: fault === null, accountIds: accountIds ?? [] };
  } catch (thrown) {
    if (!(thrown instanceof HeadgateError)) throw thrown;
    say({ part, level: "failed", what: wordsOf(thrown), hint: thrown.advice });
    return { isRead: false, accountIds: [] };
  }
}

const PAUSED_SHOWN = 20;

/** A receiver that failed for too long: its events wait until a person resumes the subscription. */
async function pausedSubscriptions(store: HubOptions["store"]): Promise<readonly HubFinding[]> {
  const paused = (await readStore(store, (stores) => stores.eventDeliveries.paused())) ?? [];
  const common = { part: "store", level: "warning", about: "subscriptions" } as const;
  const found = paused.slice(0, PAUSED_SHOWN).map(({ id, accountId, name, pausedMs, failure }) => ({
    ...common,
    what:
      `the subscription ${id} (${name}) of account ${accountId} is paused since ${isoOfMs(pausedMs ?? 0)}: ` +
      `${failure}`,
    hint: `Correct its receiver, then POST /events/subscriptions/${id}/resume: nothing is lost until then.`,
  }));
  const more = paused.length - found.length;
  return more === 0 ? found : [...found, { ...common, what: `${counted(more, "more subscription")} are paused` }];
}

/** As the start writes them to the store. */
function identities(options: HubOptions, stored: readonly number[]): HubFinding {
  const { accounts, clients, users } = options;
  const known = new Set([...stored, ...accounts.map(({ id }) => id)]);
  const [part, about] = ["hub", "sign-in"] as const;
  try {
    refuseRepeatedIds(options);
    const entered = users.flatMap((user) => user.accounts.map((accountId) => ({ username: user.username, accountId })));
    refuseUnknownAccounts(entered.filter(({ accountId }) => !known.has(accountId)));
    refuseUnknownGrants(options, [...known]);
  } catch (thrown) {
    if (!(thrown instanceof HeadgateError)) throw thrown;
    return { part, level: "failed", about, what: wordsOf(thrown), hint: thrown.advice };
  }
  const words = [counted(accounts.length, "account"), counted(clients.length, "client"), counted(users.length, "user")];
  const what = `the configuration has ${words.join(", ")}`;
  if (known.size > 0 && clients.length > 0 && users.length > 0) return { part, level: "ok", about, what };
  const hint = "To sign in takes an account, a client and a user: name one each.";
  return { part, level: "warning", about, what, hint };
}

function addresses({ listen, metrics, transfer }: HubOptions): readonly (readonly [string, string])[] {
  const named: readonly (readonly [string, string | undefined])[] = [
    ["listen", listen],
    ["metrics", metrics.listen],
    ["SFTP", transfer?.sftp?.listen],
    ["FTP", transfer?.ftp?.listen],
    ["FTP TLS", transfer?.ftp?.tls?.listen],
  ];
  return named.flatMap(([about, address]) => (address === undefined ? [] : [[about, address] as const]));
}

/** Passwords, tokens and readings that others in the network could read. */
function unencrypted({ listen, publicUrl, trustProxy, transfer }: HubOptions): readonly HubFinding[] {
  const common = { part: "hub", level: "warning", about: "encryption" } as const;
  const isOpen = (address: string | undefined) => address !== undefined && !isLoopback(hostOf(address));
  const found: HubFinding[] = [];
  if (isOpen(listen) && trustProxy === false && publicUrl?.startsWith("https:") !== true)
    found.push({
      ...common,
      what: `the hub listens on ${listen} beyond this machine, by plain HTTP: passwords and tokens can be read there`,
      hint:
        "Listen on 127.0.0.1 behind a proxy that has the certificate; then set `publicUrl` to its https address, and " +
        "`trustProxy`.",
    });
  const ftp = transfer?.ftp;
  if (ftp !== undefined && ftp.tls === undefined && isOpen(ftp.listen))
    found.push({
      ...common,
      what: `FTP listens on ${ftp.listen} beyond this machine, without TLS: passwords can be read on the way`,
      hint: "Set `transfer.ftp.tls`, or let senders use SFTP.",
    });
  return found;
}

async function addressFinding(about: string, address: string): Promise<HubFinding> {
  const part = "hub";
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon).replace(/^\[|\]$/g, "");
  const code = await listenFault(host, Number(address.slice(colon + 1)));
  if (code === null) return { part, level: "ok", about, what: `${address} is available` };
  if (code !== "EADDRINUSE") {
    const hint = "Name an address of this machine, and a port that this user may use.";
    return { part, level: "failed", about, what: `the hub cannot listen on ${address} (${code})`, hint };
  }
  if (about === "listen" && (await isHub(address)))
    return { part, level: "ok", about, what: `a hub answers at ${address} already` };
  const hint = "If the running hub uses it, this is correct.";
  return { part, level: "warning", about, what: `the port of ${address} is taken`, hint };
}

/** The system's code; null when the address is available. It is given back at once. */
async function listenFault(host: string, port: number): Promise<string | null> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host, port }, resolve);
    });
    await new Promise((resolve) => server.close(resolve));
    return null;
  } catch (thrown) {
    return systemCode(thrown) ?? wordsOf(thrown);
  }
}

async function isHub(address: string): Promise<boolean> {
  const at = address.replace(/^0\.0\.0\.0:/, "127.0.0.1:").replace(/^\[::\]:/, "[::1]:");
  try {
    const answer = await fetch(`http://${at}/health`, { signal: AbortSignal.timeout(ANSWER_MS) });
    return "pendingOperations" in ((await answer.json()) as object);
  } catch {
    // Another program, which need not speak HTTP.
    return false;
  }
}

/** The hub starts without an answer of the provider, and asks again when a person signs in. */
async function providerFinding(provider: OidcProvider, { publicUrl }: HubOptions): Promise<HubFinding> {
  const [part, about] = ["hub", `sign-in by ${provider.name}`] as const;
  try {
    await createProviderClient(provider).discover();
  } catch (thrown) {
    const hint = "Check `issuer`, and that this machine reaches it: until then no user can sign in by it.";
    return { part, level: "failed", about, what: wordsOf(thrown), hint };
  }
  const redirectUri = redirectUriOf(provider, publicUrl ?? "https://<the hub>");
  const what = `${provider.issuer} answers; the redirect URI to register there is ${redirectUri}`;
  if (publicUrl !== undefined) return { part, level: "ok", about, what };
  const hint = "Set `publicUrl`: people sign in at the address that the provider knows.";
  return { part, level: "warning", about, what, hint };
}

async function scriptsFinding({ calculated }: HubOptions): Promise<HubFinding> {
  const [part, about] = ["hub", "R scripts"] as const;
  try {
    return { part, level: "ok", about, what: await tryREngine(calculated) };
  } catch (thrown) {
    if (!(thrown instanceof HeadgateError)) throw thrown;
    return { part, level: "failed", about, what: wordsOf(thrown), hint: thrown.advice };
  }
}

async function filesFinding(options: HubOptions): Promise<HubFinding> {
  const part = "stored files";
  const folder = storedFilesFolder(options);
  if (folder === null)
    return { part, level: "warning", what: "the hub takes no files", hint: `To take them: ${NO_PLACE}.` };
  const fault = await unwritable(folder);
  const hint = "Correct `files`, or give this user the right.";
  if (fault !== null) return { part, level: "failed", what: fault, hint };
  const { files } = options;
  if (files.kind === "folder") return { part, level: "ok", what: `${folder} can be written` };
  try {
    const { storageOwner } = await import("#hub/files/s3/object-blobs.ts");
    const isNew = (await storageOwner(files)) === null;
    const words = isNew ? "no hub has used it yet" : "a hub has used it";
    return { part, level: "ok", what: `the bucket ${files.bucket} answers; ${words}` };
  } catch (thrown) {
    if (!(thrown instanceof HeadgateError)) throw thrown;
    return { part, level: "failed", what: wordsOf(thrown), hint: thrown.advice };
  }
}

/** Why this user cannot write there; null when nothing prevents it. What is missing would be made. */
async function unwritable(path: string): Promise<string | null> {
  let there = path;
  while (!existsSync(there) && dirname(there) !== there) there = dirname(there);
  try {
    await access(there, constants.W_OK);
    if (there !== path) await access(`${there}/.`, constants.X_OK);
    return null;
  } catch (thrown) {
    return `${path} cannot be written: ${wordsOf(thrown)}`;
  }
}

function counted(count: number, noun: string): string {
  return `${count === 0 ? "no" : count} ${noun}${count === 1 ? "" : "s"}`;
}
