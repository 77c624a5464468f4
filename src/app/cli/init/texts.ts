/** The configurations that `headgate init` writes, with comments for the person who completes them. */
import { stringify } from "yaml";

export interface GatewayAnswers {
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

export type DropAnswers =
  | { readonly kind: "local"; readonly path: string }
  | {
      readonly kind: "sftp" | "ftp";
      readonly host: string;
      readonly port: number | null;
      readonly username: string;
      readonly path: string;
      readonly tls: boolean;
    };

export interface HubAnswers {
  readonly listen: string;
  readonly account: string;
  readonly clientId: string;
  readonly username: string;
}

/** Secrets that both texts read from the environment of the process. */
export const GATEWAY_SECRETS = ["HEADGATE_CLIENT_SECRET", "HEADGATE_PASSWORD"] as const;
export const DROP_SECRET = "HEADGATE_DROP_PASSWORD";
export const HUB_SECRETS = ["HUB_CLIENT_SECRET", "HUB_USER_PASSWORD", "HUB_WEBHOOK_SECRET"] as const;

/** A value as YAML writes it on one line. */
const value = (of: unknown): string => stringify(of, { lineWidth: 0 }).trimEnd();

const UNSET_ACCOUNT = '    # account: "1" # the user\'s default account when left out';

export function gatewayText(answers: GatewayAnswers): string {
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

const UNENCRYPTED = "none # passwords and files are sent in the clear: use explicit where the server can";

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
