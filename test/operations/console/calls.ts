/** Calls of a running gateway's operations API, as the command line makes them. */
import type { Gateway } from "#gateway/gateway.ts";
import {
  type AnswerOf,
  type BodyGivenOf,
  type Endpoint,
  hasNoBody,
  type QueryGivenOf,
  Upload,
} from "#gateway/operations/api/endpoint.ts";

interface Given<E extends Endpoint> {
  readonly params?: Readonly<Record<string, string | number>>;
  readonly query?: QueryGivenOf<E>;
  readonly body?: BodyGivenOf<E>;
}

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly subject: string;
  readonly detail: string;
  readonly hint: string;
}

type Api = Pick<Gateway, "operationsUrl" | "operationsToken">;

/** The answer, which has the shape of the endpoint's schema. */
export async function call<E extends Endpoint>(api: Api, endpoint: E, given: Given<E> = {}): Promise<AnswerOf<E>> {
  const response = await send(api, endpoint, given);
  const answer = await response.json();
  if (!response.ok) throw new Error(`${endpoint.path} answered ${response.status}: ${JSON.stringify(answer)}`);
  const { answer: schema } = endpoint;
  if ("parse" in schema) schema.parse(answer);
  return answer as AnswerOf<E>;
}

/** The problem that the call is answered with. */
export async function refusal<E extends Endpoint>(api: Api, endpoint: E, given: Given<E> = {}): Promise<Refusal> {
  const response = await send(api, endpoint, given);
  if (response.ok) throw new Error(`${endpoint.path} answered ${response.status}`);
  return (await response.json()) as Refusal;
}

function send<E extends Endpoint>(api: Api, endpoint: E, { params = {}, query, body }: Given<E>): Promise<Response> {
  const path = endpoint.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name])));
  const url = new URL(path, api.operationsUrl);
  for (const [name, value] of Object.entries(query ?? {}))
    if (value !== undefined) url.searchParams.set(name, String(value));
  const isUpload = endpoint.body instanceof Upload;
  return fetch(url, {
    method: endpoint.method,
    headers: {
      authorization: `Bearer ${api.operationsToken}`,
      ...(hasNoBody(endpoint) ? {} : { "content-type": isUpload ? "application/octet-stream" : "application/json" }),
    },
    ...(hasNoBody(endpoint) ? {} : { body: isUpload ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body) }),
  });
}
