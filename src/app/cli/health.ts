/** `headgate health`: whether the gateway or the hub of a configuration responds; for `HEALTHCHECK` and scripts. */
import { existsSync, readFileSync } from "node:fs";
import { environmentVariable, readDocument } from "#core/config/document.ts";
import { wordsOf } from "#core/errors.ts";
import { parsedJson } from "#core/text.ts";
import { type GatewayConfig, gatewayConfigOf } from "#gateway/config.ts";
import { ledgerFile } from "#gateway/ledger/options.ts";
import type { AttentionGroup } from "#gateway/operations/api/attention.ts";
import { endpointFilePath, readEndpointFile } from "#gateway/operations/endpoint-file.ts";
import { loadHubOptions } from "#hub/config.ts";
import { askGateway } from "./ask-gateway.ts";
import { CONFIG_FILES, CONFIG_VARIABLE, type CommandFrame } from "./command.ts";
import { print, printJson } from "./output.ts";

interface HealthOptions {
  readonly config?: string;
  readonly json?: boolean;
}

interface Attention {
  readonly total: number;
  readonly groups: readonly Pick<AttentionGroup, "title">[];
}

const TIMEOUT_MS = 3_000;
/** The command line of the first process of a container. */
const FIRST_PROCESS = "/proc/1/cmdline";

export function addHealth({ command, action }: CommandFrame): void {
  command("health", ["headgate health gateway -c gateway.yaml", "headgate health hub -c hub.yaml"])
    .argument("[what]", "gateway or hub; in a container the kind of its first process")
    .option("-c, --config <file>", "its configuration; in a container that of its first process")
    .option("--json", "as JSON")
    .action(action((what: string | undefined, options: HealthOptions) => showHealth(what, options)));
}

async function showHealth(what: string | undefined, options: HealthOptions): Promise<number> {
  const first = what === undefined ? commandOf(readFileSync(FIRST_PROCESS, "utf8").split("\0")) : null;
  const kind = what ?? first?.kind ?? "gateway";
  const file = options.config ?? first?.config ?? usualFile(kind === "hub" ? "hub" : "gateway");
  const config = kind === "hub" ? null : gatewayConfigOf(readDocument(file), file, new Map());
  const url = config === null ? hubAddress(file) : await gatewayAddress(config);
  const answer = await ask(url);
  const attention = config === null || !answer.alive ? null : await askGateway<Attention>(config, "attention");
  const matters = attention?.groups.map(({ title }) => title) ?? [];
  if (options.json === true) printJson({ kind, url, ...answer, matters });
  else {
    print(`${kind} at ${url}: ${answer.words}`);
    if (attention !== null && attention.total > 0)
      print(`needs attention: ${attention.total}, as \`headgate quarantine\` lists`);
    for (const title of matters) print(`  ${title}`);
  }
  return answer.alive ? 0 : 1;
}

/** From the arguments of a process that runs `headgate gateway -c FILE` or `headgate hub -c FILE`. */
export function commandOf(words: readonly string[]): {
  readonly kind: string;
  readonly config: string | undefined;
} {
  const at = words.findIndex((word) => word === "gateway" || word === "hub");
  const flag = words.findIndex((word) => word === "-c" || word === "--config");
  const joined = words.find((word) => word.startsWith("--config="))?.slice("--config=".length);
  return { kind: words[at] ?? "gateway", config: flag < 0 ? joined : words[flag + 1] };
}

/** The file that the gateway or the hub itself would use; a container may have it in the place of the image. */
function usualFile(kind: "gateway" | "hub"): string {
  const usual = environmentVariable(CONFIG_VARIABLE) ?? CONFIG_FILES[kind];
  return existsSync(usual) ? usual : `/etc/headgate/${kind}.yaml`;
}

function hubAddress(file: string): string {
  return `http://${reachable(loadHubOptions(file).listen)}/health`;
}

/** A running gateway publishes its address. */
async function gatewayAddress(config: GatewayConfig): Promise<string> {
  const endpoint = await readEndpointFile(endpointFilePath(ledgerFile(config.ledger), config.spool));
  return `${endpoint?.url ?? `http://${reachable(config.operations.listen)}`}/health/live`;
}

/** An address that means all interfaces is reached by loopback. */
function reachable(listen: string): string {
  return listen.replace(/^0\.0\.0\.0:/, "127.0.0.1:").replace(/^\[::\]:/, "[::1]:");
}

async function ask(url: string): Promise<{ readonly alive: boolean; readonly words: string }> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await answer.text();
    const reason = answer.ok ? "" : reasonIn(text);
    return { alive: answer.ok, words: `it answers ${answer.status}${reason}` };
  } catch (thrown) {
    return { alive: false, words: wordsOf(thrown) };
  }
}

/** A hub that is not well says why. */
function reasonIn(text: string): string {
  // Another server, such as a proxy, may answer there.
  const { reason } = (parsedJson(text) ?? {}) as { readonly reason?: string };
  return reason === undefined ? "" : `: ${reason}`;
}
