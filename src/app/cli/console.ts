/** `headgate console`: links that sign in to the console of a running gateway, and hashes of passwords for it. */

import { ConfigError, RejectedError, TransientError, wordsOf } from "#core/errors.ts";
import { hashPassword } from "#core/sign-in/passwords.ts";
import { type GatewayConfig, requireResolved } from "#gateway/config.ts";
import { ledgerFile } from "#gateway/ledger/options.ts";
import { PERSON_HEADER } from "#gateway/operations/access.ts";
import { endpointFilePath, readEndpointFile } from "#gateway/operations/endpoint-file.ts";
import { addCommand, type CommandFrame, userName } from "./command.ts";
import { loadOperatedConfig, operatedConfigOption } from "./operated-config.ts";
import { print, printJson } from "./output.ts";
import { askHidden } from "./prompt.ts";

const RESPONSE_MS = 10_000;
const PASSWORD_CHARACTERS_LEAST = 8;

interface LinkOptions {
  readonly config: string;
  readonly by?: string;
  readonly json?: boolean;
}

export function addConsole({ command, stop, action }: CommandFrame): void {
  const console = command("console", ["headgate console link -c gateway.yaml"]);
  addCommand(console, "link", "Prints a link that signs in once, to the console of the gateway that runs.", [
    "headgate console link -c gateway.yaml",
  ])
    .addOption(operatedConfigOption())
    .option("--by <name>", "name under which commands are recorded; the user of the operating system by default")
    .option("--json", "as JSON")
    .action(action((options: LinkOptions) => printLink(options)));
  addCommand(
    console,
    "password",
    "Reads a password from the terminal or standard input, and prints its hash for operations.console.users.",
    ["headgate console password > /etc/headgate/console-ada"],
  ).action(action(() => printHash(stop)));
}

async function printLink(options: LinkOptions): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  requireResolved(config, "ledger", "spool");
  const link = await requestLink(config, options.by ?? userName());
  if (options.json === true) printJson(link);
  else print(link.url);
  return 0;
}

interface Link {
  readonly url: string;
  readonly expiresAt: string;
}

/** Throws `ConfigError` where no gateway runs, and the gateway's refusal where people sign in with passwords. */
async function requestLink(config: GatewayConfig, by: string): Promise<Link> {
  const facts = { operation: "make link", subject: "console" };
  const endpoint = await readEndpointFile(endpointFilePath(ledgerFile(config.ledger), config.spool));
  if (endpoint === null)
    throw new ConfigError("HG-OPS-008", {
      ...facts,
      message: "no gateway runs with this configuration, or its secret cannot be read by this user",
    });
  let answer: Response;
  try {
    answer = await fetch(`${endpoint.url}/operations/console/links`, {
      method: "POST",
      headers: { authorization: `Bearer ${endpoint.secret}`, [PERSON_HEADER]: encodeURIComponent(by) },
      redirect: "error",
      signal: AbortSignal.timeout(RESPONSE_MS),
    });
  } catch (cause) {
    const message = `the gateway does not respond at ${endpoint.url}: ${wordsOf(cause)}`;
    throw new TransientError("HG-OPS-008", { ...facts, subject: endpoint.url, message, cause });
  }
  if (answer.ok) return (await answer.json()) as Link;
  const { detail, hint } = (await answer.json()) as { readonly detail: string; readonly hint?: string };
  throw new RejectedError("HG-OPS-007", {
    ...facts,
    subject: endpoint.url,
    message: detail,
    ...(hint === undefined ? {} : { hint }),
  });
}

async function printHash(stop: AbortSignal): Promise<number> {
  const password = await askHidden("Password: ", stop);
  if (password.length < PASSWORD_CHARACTERS_LEAST)
    throw new ConfigError("HG-CLI-001", {
      operation: "hash password",
      subject: "standard input",
      message: `a password has ${PASSWORD_CHARACTERS_LEAST} characters at least`,
    });
  print(await hashPassword(password));
  return 0;
}
