/** Probes for `headgate check`: token, account, right to push, right to read. */

import { Readable } from "node:stream";
import { type Clock, clockFault, clockOffset } from "#core/clock.ts";
import { HeadgateError, TransientError, wordsOf } from "#core/errors.ts";
import type { ServiceClient, Token } from "#wire/client/index.ts";
import { usualAggregate } from "#wire/data.ts";
import { API_VERSION } from "#wire/problem.ts";
import { CONSEQUENCES, judge } from "./retry-table.ts";

export interface ProbeLine {
  readonly level: "ok" | "warning" | "failed";
  readonly what: string;
  readonly hint?: string;
}

export interface ProbeParts {
  readonly client: ServiceClient;
  readonly clock: Clock;
  readonly account: string | undefined;
  readonly apiVersion: string;
  readonly auth: "bearer" | "basic";
  /** Reading back is the only source of outcomes. */
  readonly readsBack: boolean;
  /** Where the service is to send outcomes; undefined: nowhere. */
  readonly webhookUrl: string | undefined;
}

export async function probeService(
  { client, clock, account, readsBack, apiVersion, auth, webhookUrl }: ProbeParts,
  signal: AbortSignal,
): Promise<readonly ProbeLine[]> {
  const lines: ProbeLine[] = [];
  try {
    const token = await client.token(signal);
    lines.push(accountLine(token, account));
  } catch (thrown) {
    return [tokenFailed(thrown, account, signal)];
  }
  lines.push(...(await probePush(client, clock, webhookUrl, signal)), await probeRead(client, readsBack, signal));
  if (lines.at(-1)?.level === "ok") lines.push(...(await probeQuantities(client, signal)));
  lines.push(...clockLines(client));
  if (auth === "basic") lines.push(BASIC_LINE);
  return [...lines, versionLine(apiVersion)];
}

const BASIC_LINE: ProbeLine = {
  level: "warning",
  what: "push: by user and password, so that the service takes the account that the user touched last",
  hint:
    "Use `auth: bearer`: only a token names its account. Or give the gateway a user of its own who may " +
    "enter one account alone.",
};

/** By the answers to the probes. */
function clockLines({ name, clockSeen }: ServiceClient): ProbeLine[] {
  if (clockSeen === null) return [];
  const fault = clockFault(name, clockSeen);
  if (fault !== null) return [{ level: "warning", what: `clock: ${fault.words}`, hint: fault.hint }];
  const { withinMs } = clockOffset(clockSeen);
  return [{ level: "ok", what: `clock: agrees with that of the service, within ${Math.ceil(withinMs / 1000)} s` }];
}

function versionLine(apiVersion: string): ProbeLine {
  const what = `api: every call carries Api-Version ${apiVersion}`;
  if (apiVersion === API_VERSION) return { level: "ok", what };
  return {
    level: "warning",
    what: `${what}; ${API_VERSION} is the documented one, which Headgate is written for`,
    hint: "Leave `apiVersion` of the service out, unless the platform operator says otherwise.",
  };
}

/**
 * The endpoint responds `invalid_grant` both to wrong passwords and to accounts that are closed to the user (RFC 6749,
 * 5.2); the messages differ by service.
 */
function tokenFailed(thrown: unknown, account: string | undefined, signal: AbortSignal): ProbeLine {
  const line = failed("token", thrown, signal);
  if (!(thrown instanceof HeadgateError) || thrown.code !== "HG-PUSH-003" || account === undefined) return line;
  const words = thrown.message.includes("account")
    ? `The user may not enter account ${account}: correct \`account\` of the service, or have a manager ` +
      "of that account let the user in."
    : `${thrown.hint} If they are right: may the user enter account ${account}?`;
  return { ...line, hint: words };
}

function accountLine(token: Token, account: string | undefined): ProbeLine {
  const scopes = token.scopes === null ? "" : `, scopes ${token.scopes.join(" ")}`;
  if (token.account !== null && account !== undefined)
    return { level: "ok", what: `token: account ${token.account}${scopes}` };
  if (account !== undefined)
    return { level: "ok", what: `token: does not name its account; ${account} was asked for${scopes}` };
  return {
    level: "warning",
    what: `token: account ${token.account ?? "unknown"}${scopes}, but none is configured`,
    hint: "Set `account` of the service: without it the token is for the account that the user touched last.",
  };
}

/** An empty array names no variable, so that nothing can be stored; token, scope and right are checked all the same. */
async function probePush(
  client: ServiceClient,
  clock: Clock,
  webhookUrl: string | undefined,
  signal: AbortSignal,
): Promise<ProbeLine[]> {
  const operationId = `headgate-check-${clock.now().epochMilliseconds}`;
  const body = "[]";
  const call = {
    body: () => Readable.from([Buffer.from(body)]),
    length: body.length,
    operationId,
    operationTimeoutSec: 10,
    idempotencyKey: operationId,
    // A gateway that takes any free port has no address yet, and the service would try in vain for minutes.
    webhookUrl: webhookUrl === undefined || new URL(webhookUrl).port === "0" ? undefined : webhookUrl,
  };
  try {
    const answer = await client.push(call, signal);
    const verdict = judge(answer);
    if (verdict === "accepted")
      return [{ level: "ok", what: "push: may push" }, ...webhookLines(answer.webhookRefusal)];
    // The service checked the content, so that the caller was authorized.
    if (verdict === "bisect")
      return [{ level: "ok", what: `push: let in (an empty push is answered ${answer.words})` }];
    const what = `push: ${answer.words}`;
    if (verdict === "transient")
      return [
        {
          level: "warning",
          what,
          hint: "The service is there and cannot take pushes now; check again later.",
        },
      ];
    return [{ level: "failed", what, hint: CONSEQUENCES[verdict] }];
  } catch (thrown) {
    return [failed("push", thrown, signal)];
  }
}

function webhookLines(refusal: string | undefined): ProbeLine[] {
  if (refusal === undefined) return [];
  return [
    {
      level: "warning",
      what: `webhook: ${refusal}; outcomes are read back instead`,
      hint:
        "Have the operator of the service open the host of `operations.webhook.publicUrl` (a hub: " +
        "`webhook.hosts`), or leave `publicUrl` out.",
    },
  ];
}

async function probeRead(client: ServiceClient, readsBack: boolean, signal: AbortSignal): Promise<ProbeLine> {
  try {
    await client.getSites({ "Paging.PageNumber": 0, "Paging.ItemsPerPage": 1 }, signal);
    return { level: "ok", what: "read: may read" };
  } catch (thrown) {
    const line = failed("read", thrown, signal);
    if (!readsBack)
      return {
        ...line,
        level: "warning",
        what: `${line.what}; targets cannot be checked before the first push, and outcomes cannot be read back`,
      };
    const what =
      `${line.what}; targets cannot be checked before the first push, outcomes cannot be read back, and ` +
      "no webhook is configured that would report them";
    return { ...line, what };
  }
}

const VARIABLES_MAX = 1_000;
const NAMED_MAX = 3;

/** A variable without a quantity is averaged by its readers, also where its values add up. */
async function probeQuantities(client: ServiceClient, signal: AbortSignal): Promise<ProbeLine[]> {
  try {
    const query = { "Paging.PageNumber": 0, "Paging.ItemsPerPage": VARIABLES_MAX };
    const { items } = await client.getVariables(query, signal);
    const unsaid = items.filter((variable) => usualAggregate(variable) === null);
    if (unsaid.length === 0) return [];
    const named = unsaid.slice(0, NAMED_MAX).map(({ id, name }) => `${name} (${id})`);
    const more = unsaid.length > NAMED_MAX ? `, and ${unsaid.length - NAMED_MAX} more` : "";
    const of = items.length < VARIABLES_MAX ? `${items.length}` : `the first ${VARIABLES_MAX}`;
    return [
      {
        level: "warning",
        what:
          `read: ${unsaid.length} of ${of} variables have neither quantityType nor aggregate: ` +
          `${named.join(", ")}${more}`,
        hint:
          "Set `quantityType` of these variables (GET /quantityTypes): readers average them, also where they " +
          "add up.",
      },
    ];
  } catch (thrown) {
    return [failed("read", thrown, signal)];
  }
}

/** A hint for the person who writes the configuration: the hints of the register refer to running batches. */
function hintOf(part: "token" | "push" | "read", error: HeadgateError): string {
  const option = part === "read" ? "base" : part;
  if (error instanceof TransientError)
    return (
      `Check the address in \`${option}\` of the service, whether it is up, and the network, firewalls ` +
      "and proxies on the way."
    );
  const wrongAddress = error.code === "HG-PUSH-009" || error.code === "HG-PUSH-010";
  return part === "read" && wrongAddress ? "Check the address in `base` of the service." : error.hint;
}

function failed(part: "token" | "push" | "read", thrown: unknown, signal: AbortSignal): ProbeLine {
  if (signal.aborted) throw signal.reason;
  const what = `${part}: ${wordsOf(thrown)}`;
  return thrown instanceof HeadgateError
    ? { level: "failed", what, hint: hintOf(part, thrown) }
    : { level: "failed", what };
}
