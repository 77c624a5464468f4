/** The operator's interface of a gateway in this process, asked with its credentials. */
import type { Gateway } from "#gateway/gateway.ts";

export function askOperations(
  gateway: Pick<Gateway, "operationsUrl" | "operationsToken">,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const authorization = `Bearer ${gateway.operationsToken}`;
  return fetch(`${gateway.operationsUrl}${path}`, { headers: { authorization, ...headers } });
}
