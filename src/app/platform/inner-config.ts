/** The configuration of the gateway inside a hub, made from that of the hub. */
import { hostname } from "node:os";
import { type GatewayConfig, innerGatewayConfig } from "#gateway/config.ts";
import { gatewayPlaces } from "#hub/gateway-places.ts";
import type { HubOptions } from "#hub/options.ts";
import { readStore } from "#hub/store/open.ts";

/** A file that another hub took is only found by a poll. */
const SHARED_EVERY = "3s";

/** Name of the service, and of the drop, of an account. */
export function nameOfAccount(accountId: number): string {
  return `account-${accountId}`;
}

/** NaN for another name. */
export function accountOfName(name: string): number {
  return Number(/^account-(\d+)$/.exec(name)?.[1]);
}

/** `url`: where the hub listens. */
export function innerConfig(options: HubOptions, url: string, accountIds: readonly number[]): GatewayConfig {
  const base = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
  const { ledger, spool, isShared } = gatewayPlaces(options, `${hostname()}-${new URL(url).port}`);
  return innerGatewayConfig.parse({
    services: accountIds.map((id) => serviceOf(id, base, options)),
    ledger,
    // The bytes stay in the storage of the hub.
    spool: { path: spool, keepInputs: { age: "1d", size: "200MB" } },
    workers: {
      count: options.files.workers,
      memory: `${options.files.memory}B`,
      timeLimit: `${options.files.timeLimit}ms`,
    },
    mappers: { folders: options.files.mappers },
    drops: accountIds.map((id) => ({
      ...{ kind: "hub", name: nameOfAccount(id), maxFileSize: `${options.limits.file}B` },
      ...(isShared ? { every: SHARED_EVERY } : {}),
    })),
    triggers: accountIds.map((id) => triggersOf(id)),
    // The outcomes are reported from the hub's records.
    push: { confirm: { by: "webhook", webhookWait: "30s", pollEvery: "1s" } },
    operations: { listen: "127.0.0.1:0" },
    log: options.log,
  });
}

/** For a command, beside the hub or without it. Throws as the store does when it is opened. */
export async function storedInnerConfig(options: HubOptions): Promise<GatewayConfig> {
  const { accounts, listen, store } = options;
  const known = await readStore(store, ({ identity }) => identity.accountIds());
  // Another hub of the store may have made an account, or hub.yaml may no longer have one.
  const accountIds = new Set([...accounts.map(({ id }) => id), ...(known ?? [])]);
  return innerConfig(options, `http://${listen}`, [...accountIds]);
}

function serviceOf(accountId: number, base: string, { accounts, limits, customerLimits }: HubOptions) {
  const own = accounts.find(({ id }) => id === accountId)?.limits?.futureHorizon;
  const future = own ?? customerLimits.futureHorizon ?? limits.futureHorizon;
  // The tokens come from the hub in this process.
  const none = "(no password)";
  return {
    name: nameOfAccount(accountId),
    base,
    push: `${base}/push`,
    token: `${base}/connect/token`,
    account: accountId,
    credentials: { clientId: none, clientSecret: none, username: none, password: none },
    idempotency: true,
    ingestion: { future: `${future}ms` },
  };
}

/** An unknown variable is discarded and reported, as it is for a push to the hub. */
function triggersOf(accountId: number) {
  const name = nameOfAccount(accountId);
  const source = { from: "service", service: name, drops: [name], confirmEmpty: 1 };
  return { ...source, guard: { targets: "warn", versions: "push" } };
}
