/**
 * Rates of requests, for each account and for each client (specification, *Limits*: customer-level, configurable). Each
 * node counts separately.
 */
import rateLimit from "@fastify/rate-limit";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubOptions } from "../options.ts";
import type { Principal } from "../token/guard.ts";
import { isInner } from "../token/inner.ts";

const MINUTE_MS = 60_000;

interface Limit {
  readonly key: string;
  readonly max: number;
}

/** Called after `installAccess`, when the caller is known. */
export function installRates(app: FastifyInstance, options: HubOptions): void {
  const limitsOf = (principal: Principal): Limit[] => {
    const { accountId, clientId } = principal;
    const account = options.accounts.find(({ id }) => id === accountId)?.limits?.requestsPerMinute;
    const client = options.clients.find(({ id }) => id === clientId)?.requestsPerMinute;
    return [
      { key: `account ${accountId}`, max: account ?? options.customerLimits.requestsPerMinute },
      { key: `client ${clientId}`, max: client },
    ].flatMap(({ key, max }) => (max === undefined ? [] : [{ key, max }]));
  };
  void app.register(rateLimit, { global: false });
  const counters = new Map<string, Counter>();
  const counterOf = ({ key, max }: Limit): Counter => {
    const known = counters.get(key);
    if (known !== undefined) return known;
    const made = app.createRateLimit({ max, timeWindow: MINUTE_MS, keyGenerator: () => key });
    counters.set(key, made);
    return made;
  };
  app.addHook("onRequest", async (request, reply) => {
    if (request.principal === null || isInner(request.principal)) return;
    for (const limit of limitsOf(request.principal)) await count(request, reply, limit, counterOf(limit));
  });
}

type Counter = ReturnType<FastifyInstance["createRateLimit"]>;

async function count(request: FastifyRequest, reply: FastifyReply, { key, max }: Limit, counter: Counter) {
  const result = await counter(request);
  if (result.isAllowed) return;
  void reply.headers({
    "x-ratelimit-limit": max,
    "x-ratelimit-remaining": result.remaining,
    "x-ratelimit-reset": result.ttlInSeconds,
  });
  if (!result.isExceeded) return;
  const words = `more than ${max} requests in a minute for the ${key}`;
  throw new HttpProblem(429, "too-many-requests", words, undefined, Math.max(1, result.ttlInSeconds));
}
