/** Queries to a running gateway, apart from commands to it, so that what only asks starts quickly. */
import type { GatewayConfig } from "#gateway/config.ts";
import { ledgerFile } from "#gateway/ledger/options.ts";
import { endpointFilePath, readEndpointFile } from "#gateway/operations/endpoint-file.ts";

/** A gateway that is asked for what it knows may be absent. */
const QUERY_MS = 2_000;

/** Asks a running gateway for facts beyond its ledger; `what`: behind `/operations/`. Null when none responds. */
export async function askGateway<T>(config: Pick<GatewayConfig, "ledger" | "spool">, what: string): Promise<T | null> {
  const endpoint = await readEndpointFile(endpointFilePath(ledgerFile(config.ledger), config.spool));
  if (endpoint === null) return null;
  try {
    const answer = await fetch(`${endpoint.url}/operations/${what}`, {
      headers: { authorization: `Bearer ${endpoint.secret}` },
      redirect: "error",
      signal: AbortSignal.timeout(QUERY_MS),
    });
    return answer.ok ? ((await answer.json()) as T) : null;
  } catch {
    // No gateway runs: the ledger is used instead.
    return null;
  }
}
