/** Asks the operations API of a gateway in this process, as the console does. */
import { expect } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import { askOperations } from "../../support/operations.ts";

type Asked = Pick<Gateway, "operationsUrl" | "operationsToken">;

// biome-ignore lint/suspicious/noExplicitAny: answers are compared with what is expected, field by field.
type Answer = any;

export async function get(gateway: Asked, path: string): Promise<Answer> {
  const response = await askOperations(gateway, `/operations/${path}`);
  const body = await response.json();
  expect(response.status, JSON.stringify(body)).toBe(200);
  return body;
}

/** The problem with which it is refused. */
export async function refusal(gateway: Asked, path: string): Promise<Answer> {
  const response = await askOperations(gateway, `/operations/${path}`);
  expect(response.headers.get("content-type")).toContain("application/problem+json");
  return { status: response.status, ...((await response.json()) as object) };
}

export async function post(gateway: Asked, path: string, body: unknown): Promise<Answer> {
  const response = await fetch(`${gateway.operationsUrl}/operations/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.operationsToken}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  expect(response.status, JSON.stringify(answer)).toBe(200);
  return answer;
}
