/** For `headgate check`: token, account, right to push, right to read. */

import { Readable } from "node:stream";
import type { Clock } from "../support/clock.ts";
import { HeadgateError, wordsOf } from "../support/errors.ts";
import type { ServiceClient, Token } from "../wire/client/index.ts";
import { CONSEQUENCES, judge } from "./retry-table.ts";

export interface ProbeLine {
  readonly level: "ok" | "warning" | "failed";
  readonly what: string;
  readonly hint?: string;
}

export async function probeService(
  client: ServiceClient,
  account: string | undefined,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly ProbeLine[]> {
  const lines: ProbeLine[] = [];
  try {
    const token = await client.token(signal);
    lines.push(accountLine(token, account));
  } catch (thrown) {
    return [failed("token", thrown, signal)];
  }
  lines.push(await probePush(client, clock, signal), await probeRead(client, signal));
  return lines;
}

function accountLine(token: Token, account: string | undefined): ProbeLine {
  const scopes = token.scopes === null ? "" : `, scopes ${token.scopes.join(" ")}`;
  if (token.account !== null && account !== undefined)
    return { level: "ok", what: `token: account ${token.account}${scopes}` };
  if (account !== undefined)
    return { level: "ok", what: `token: does not tell its account; ${account} was asked for${scopes}` };
  return {
    level: "warning",
    what: `token: account ${token.account ?? "not told"}${scopes}, but none is configured`,
    hint: "Set `account` of the service: without it the token is for the account that the user touched last.",
  };
}

/** An empty array names no variable, so that nothing can be stored; token, scope and right are asked for all the same. */
async function probePush(client: ServiceClient, clock: Clock, signal: AbortSignal): Promise<ProbeLine> {
  const operationId = `headgate-check-${clock.now().epochMilliseconds}`;
  const body = "[]";
  const call = {
    body: () => Readable.from([Buffer.from(body)]),
    length: body.length,
    operationId,
    operationTimeoutSec: 10,
    idempotencyKey: operationId,
  };
  try {
    const answer = await client.push(call, signal);
    const verdict = judge(answer);
    if (verdict === "accepted") return { level: "ok", what: "push: may push" };
    // The content was looked at, so that the caller had been let in.
    if (verdict === "bisect")
      return { level: "ok", what: `push: let in (an empty push is answered ${answer.words})` };
    const level = verdict === "transient" ? "warning" : "failed";
    return { level, what: `push: ${answer.words}`, hint: CONSEQUENCES[verdict] };
  } catch (thrown) {
    return failed("push", thrown, signal);
  }
}

async function probeRead(client: ServiceClient, signal: AbortSignal): Promise<ProbeLine> {
  try {
    await client.getSites({ "Paging.PageNumber": 0, "Paging.ItemsPerPage": 1 }, signal);
    return { level: "ok", what: "read: may read" };
  } catch (thrown) {
    const line = failed("read", thrown, signal);
    return { ...line, level: "warning", what: `${line.what}; outcomes cannot be read back` };
  }
}

function failed(part: string, thrown: unknown, signal: AbortSignal): ProbeLine {
  if (signal.aborted) throw signal.reason;
  const what = `${part}: ${wordsOf(thrown)}`;
  return thrown instanceof HeadgateError
    ? { level: "failed", what, hint: thrown.hint }
    : { level: "failed", what };
}
