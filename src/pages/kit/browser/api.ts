/** Requests of a page to the interface of its own server, as the session of this browser may make them. */

export type Parameters = Readonly<
  Record<string, string | number | boolean | null | undefined | readonly (string | number)[]>
>;

/** The session is over: only signing in helps. */
export class SessionEnded extends Error {}

/** A refusal of the server, with its next move (RFC 9457). */
export class Problem extends Error {
  readonly status: number;
  readonly code: string | null;
  readonly hint: string | null;

  constructor(status: number, fault: { detail?: unknown; title?: unknown; code?: unknown; hint?: unknown }) {
    super(String(fault.detail ?? fault.title ?? status));
    this.status = status;
    this.code = typeof fault.code === "string" ? fault.code : null;
    this.hint = typeof fault.hint === "string" ? fault.hint : null;
  }
}

/** Scripts prove with this token that they belong to a page of the server. */
function csrfToken(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csrf-token"]')?.content ?? "";
}

/** A path with its query; null, undefined and "" are left out. */
export function addressWith(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    for (const one of [value].flat())
      if (one !== null && one !== undefined && one !== "") query.append(name, String(one));
  return `${path}${query.size === 0 ? "" : `?${query}`}`;
}

export interface Asked {
  readonly method?: string;
  /** Sent as JSON, or as it is when it is a file. */
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** Shown when there is no connection. */
  readonly unreachable: string;
}

/** Throws `SessionEnded`, `Problem`, or an error with the words of `unreachable`. */
export async function answerOf(address: string, { method, body, signal, unreachable }: Asked): Promise<Response> {
  const isFile = body instanceof Blob;
  const type = isFile ? "application/octet-stream" : "application/json";
  const headers = {
    accept: "application/json",
    "x-csrf-token": csrfToken(),
    ...(body === undefined ? {} : { "content-type": type }),
  };
  const response = await fetch(address, {
    method: method ?? "GET",
    headers,
    ...(body === undefined ? {} : { body: isFile ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((thrown: unknown) => {
    if (signal?.aborted) throw thrown;
    throw new Error(unreachable);
  });
  if (response.status === 401) throw new SessionEnded();
  if (response.ok) return response;
  throw new Problem(response.status, Object(await response.json().catch(() => null)));
}
