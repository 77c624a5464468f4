/** `headgate init`: writes a checked configuration with comments, from a few questions or from flags. */
import { existsSync } from "node:fs";
import { Option } from "commander";
import { stringify } from "yaml";
import { parseConfigText } from "#core/config/document.ts";
import { writeDurably } from "#core/durable.ts";
import { ConfigError, invalidOption } from "#core/errors.ts";
import { gatewayConfig } from "#gateway/config.ts";
import { hubOptions } from "#hub/options.ts";
import type { CommandFrame } from "../command.ts";
import { print, printJson, styled } from "../output.ts";
import { ask, canAsk } from "../prompt.ts";

interface InitOptions {
  readonly output?: string;
  readonly service?: string;
  readonly push?: string;
  readonly token?: string;
  readonly account?: string;
  readonly clientId?: string;
  readonly username?: string;
  readonly drop?: string;
  readonly endsWith?: string;
  readonly mapper?: string;
  readonly timeZone?: string;
  readonly listen?: string;
  readonly json?: boolean;
}

/** Secrets that both texts read from the environment of the process. */
const GATEWAY_SECRETS = ["HEADGATE_CLIENT_SECRET", "HEADGATE_PASSWORD"] as const;
const DROP_SECRET = "HEADGATE_DROP_PASSWORD";
const HUB_SECRETS = ["HUB_CLIENT_SECRET", "HUB_USER_PASSWORD", "HUB_WEBHOOK_SECRET"] as const;

/** A value as YAML writes it on one line. */
const value = (of: unknown): string => stringify(of, { lineWidth: 0 }).trimEnd();

const UNSET_ACCOUNT = '    # account: "1" # the user\'s default account when left out';
const UNENCRYPTED = "none # passwords and files are sent in the clear: use explicit where the server can";

export function addInit({ command, stop, action }: CommandFrame): void {
  command("init", [
    "headgate init",
    "headgate init gateway --service https://hub.example.com --username pusher --client-id gateway --drop " +
      "/srv/meters --ends-with .csv",
    "headgate init hub --listen 127.0.0.1:8070 --account 'Town of Example'",
  ])
    .option("-o, --output <file>", "file to write (default: ./gateway.yaml or ./hub.yaml)")
    .option("--service <url>", "gateway: base address of the service")
    .option("--push <url>", "gateway: address of its push interface (default: the base address and /push)")
    .option("--token <url>", "gateway: address of its token endpoint (default: the base address and /connect/token)")
    .option(
      "--account <account>",
      "gateway: id of the account (default: the user's own); hub: name of the first account",
    )
    .option("--client-id <id>", "client that signs in (default: gateway)")
    .option("--username <name>", "user that signs in (default: pusher)")
    .option("--drop <place>", "gateway: a folder, or sftp://user@host/path, ftp:// or ftps:// (default: ./drop)")
    .option("--ends-with <text>", "gateway: end of the names of the files to take (default: .csv)")
    .option("--mapper <name>", "gateway: mapper that reads them (default: standard)")
    .option("--time-zone <zone>", "gateway: time zone of times without one, such as Europe/Brussels")
    .addOption(new Option("--listen <address>", "hub: address to listen on (default: 127.0.0.1:8070)"))
    .option("--json", "as JSON")
    .action(action((what: string | undefined, options: InitOptions) => init(what ?? "gateway", options, stop)));
}

async function init(what: string, options: InitOptions, stop: AbortSignal): Promise<number> {
  if (what !== "gateway" && what !== "hub") throw invalidOption("what", `${what} is neither gateway nor hub`);
  const file = options.output ?? `./${what}.yaml`;
  if (existsSync(file)) throw new ConfigError("HG-CLI-009", { operation: "write configuration", subject: file });
  const answer = answerer(options, stop);
  const { text, secrets } = what === "hub" ? await hubFile(answer) : await gatewayFile(options, answer);
  if (stop.aborted) return 1;
  assertValid(text, what, file);
  await writeDurably(file, text);
  const next = [`headgate ${what === "hub" ? "hub" : "check"} -c ${file}`];
  if (options.json === true) {
    printJson({ file, secrets, next });
    return 0;
  }
  print(`${styled("green", "written")}  ${file}`);
  print(`It takes secrets from the environment: set ${secrets.join(", ")}.`);
  print(`Then: ${next.join(", ")}`);
  return 0;
}

/**
 * The value of a flag, or else the answer of the person at the terminal, or else the default; null where there is
 * none.
 */
type Answerer = (flag: keyof InitOptions, question: string, fallback: string | null) => Promise<string | null>;

function answerer(options: InitOptions, stop: AbortSignal): Answerer {
  return async (flag, question, fallback) => {
    const given = options[flag];
    if (typeof given === "string") return given;
    if (!canAsk() || options.json === true || stop.aborted) return fallback;
    const said = await ask(`${question}${fallback === null ? "" : ` [${fallback}]`}: `, stop);
    return said === "" ? fallback : said;
  };
}

async function gatewayFile(options: InitOptions, answer: Answerer) {
  const given = await answer("service", "Base address of the service", null);
  if (given === null) throw invalidOption("--service", "it is missing: give the base address of the service");
  const service = given.replace(/\/+$/, "");
  const drop = dropOf(
    (await answer("drop", "Folder, or sftp:// or ftp:// address, where files arrive", "./drop")) ?? "",
  );
  const timeZone = await answer("timeZone", "Time zone of times without one (empty: files give it)", null);
  const text = gatewayText({
    service,
    push: options.push ?? `${service}/push`,
    token: options.token ?? `${service}/connect/token`,
    account: await answer("account", "Account id (empty: the user's own)", null),
    clientId: (await answer("clientId", "Client id", "gateway")) ?? "",
    username: (await answer("username", "User", "pusher")) ?? "",
    drop,
    endsWith: (await answer("endsWith", "Names of the files end with", ".csv")) ?? "",
    mapper: (await answer("mapper", "Mapper (`headgate mapper list` shows them)", "standard")) ?? "",
    metadata: timeZone === null ? {} : { timeZone },
  });
  return { text, secrets: drop.kind === "local" ? [...GATEWAY_SECRETS] : [...GATEWAY_SECRETS, DROP_SECRET] };
}

async function hubFile(answer: Answerer) {
  const text = hubText({
    listen: (await answer("listen", "Address to listen on", "127.0.0.1:8070")) ?? "",
    account: (await answer("account", "Name of the first account", "Main")) ?? "",
    clientId: (await answer("clientId", "Client id", "gateway")) ?? "",
    username: (await answer("username", "User", "pusher")) ?? "",
  });
  return { text, secrets: [...HUB_SECRETS] };
}

function dropOf(place: string): DropAnswers {
  const url = /^(?:sftp|ftps?):\/\//i.test(place) ? URL.parse(place) : null;
  if (url === null) {
    if (place === "" || /^[a-z]+:\/\//i.test(place))
      throw invalidOption("--drop", `${place} is neither a folder nor an sftp://, ftp:// or ftps:// address`);
    return { kind: "local", path: place };
  }
  if (url.password !== "")
    throw invalidOption("--drop", `the address holds a password: leave it out, it is taken from ${DROP_SECRET}`);
  if (url.username === "") throw invalidOption("--drop", "the address names no user: write sftp://user@host/path");
  return {
    kind: url.protocol === "sftp:" ? "sftp" : "ftp",
    host: url.hostname,
    port: url.port === "" ? null : Number(url.port),
    username: decodeURIComponent(url.username),
    path: decodeURIComponent(url.pathname) || "/",
    tls: url.protocol === "ftps:",
  };
}

/** Validates the text with a placeholder for each secret, which may not be set yet. */
function assertValid(text: string, what: "gateway" | "hub", file: string): void {
  const filled = text.replace(/\$\{env:[^}]+\}/g, "a secret that is not set yet");
  parseConfigText(filled, what === "hub" ? hubOptions : gatewayConfig, file);
}

// The configurations that `headgate init` writes, with comments for the person who completes them.

interface GatewayAnswers {
  /** Address of the service's base interface. */
  readonly service: string;
  readonly push: string;
  readonly token: string;
  readonly account: string | null;
  readonly clientId: string;
  readonly username: string;
  readonly drop: DropAnswers;
  readonly endsWith: string;
  readonly mapper: string;
  /** Settings of the mapper. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

type DropAnswers =
  | { readonly kind: "local"; readonly path: string }
  | {
      readonly kind: "sftp" | "ftp";
      readonly host: string;
      readonly port: number | null;
      readonly username: string;
      readonly path: string;
      readonly tls: boolean;
    };

interface HubAnswers {
  readonly listen: string;
  readonly account: string;
  readonly clientId: string;
  readonly username: string;
}

function gatewayText(answers: GatewayAnswers): string {
  const { service, push, token, account, clientId, username, endsWith, mapper, metadata } = answers;
  const settings = Object.keys(metadata).length === 0 ? "" : `\n    metadata: ${JSON.stringify(metadata)}`;
  return `# Configuration of the gateway. \`headgate check\` tries every part of it;
# docs/configuration.md has all settings.
# \${env:NAME} takes a secret from the environment, \${file:PATH} from a file.

# Where readings go.
services:
  - name: service
    base: ${value(service)}
    push: ${value(push)}
    token: ${value(token)}
${account === null ? UNSET_ACCOUNT : `    account: ${JSON.stringify(account)}`}
    credentials:
      clientId: ${value(clientId)}
      clientSecret: "\${env:HEADGATE_CLIENT_SECRET}"
      username: ${value(username)}
      password: "\${env:HEADGATE_PASSWORD}"

# What was done, and what waits: on a disk that survives a restart.
ledger:
  kind: sqlite
  path: ./state/ledger.sqlite
spool:
  path: ./state/spool

# Where files arrive. Delivered files are archived beside them; everything else stays where it is.
drops:
${dropText(answers.drop)}

# Which files are read by which mapper. \`headgate mapper list\` shows the mappers and their settings.
triggers:
  - name: measurements
    fileNamePatternMatches:
      - { filterType: EndsWith, value: ${value(endsWith)} }
    mapper: ${value(mapper)}${settings}
    # strict: nothing of a file is delivered before all of its rows are understood; lenient: the good rows are.
    rows: strict

operations:
  # Health, metrics and the commands beside a running gateway.
  listen: 127.0.0.1:9464
`;
}

function dropText(drop: DropAnswers): string {
  if (drop.kind === "local") return `  - name: files\n    kind: local\n    path: ${value(drop.path)}`;
  const { kind, host, port, username, path, tls } = drop;
  const keys =
    kind === "sftp"
      ? "\n    # `headgate check` shows the fingerprint of the server's key: compare it with that of its " +
        "operator, and add it.\n    hostKeys: []"
      : `\n    tls: ${tls ? "explicit" : UNENCRYPTED}`;
  return `  - name: files
    kind: ${kind}
    host: ${value(host)}${port === null ? "" : `\n    port: ${port}`}
    path: ${value(path)}
    username: ${value(username)}
    password: "\${env:${DROP_SECRET}}"${keys}`;
}

export function hubText({ listen, account, clientId, username }: HubAnswers): string {
  return `# Configuration of the hub, the measurement data service. docs/hub-configuration.md has all settings.
# \${env:NAME} takes a secret from the environment, \${file:PATH} from a file.
listen: ${value(listen)}
# The address of a proxy that ends TLS, for clients on other machines; \`trustProxy\` names the proxy.
# publicUrl: https://hub.example.com

store:
  kind: sqlite
  path: ./state/hub.sqlite

accounts:
  - id: 1
    name: ${value(account)}

# What programs sign in with, beside a user.
clients:
  - id: ${value(clientId)}
    secret: "\${env:HUB_CLIENT_SECRET}"

users:
  - username: ${value(username)}
    password: "\${env:HUB_USER_PASSWORD}"
    accounts: [1]
    # Manager: all rights on the account, such as creating sites. Datapusher: may push readings.
    roles: [User, Manager, Datapusher]

# Signs what the hub reports about operations to the addresses that pushes name.
webhook:
  secret: "\${env:HUB_WEBHOOK_SECRET}"
`;
}
