/** Serves the endpoints that `api/` describes: checks the input, calls the handler, and sends its answer. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { RejectedError } from "#core/errors.ts";
import { parsedJson } from "#core/text.ts";
import {
  type Asked,
  type BodyOf,
  Download,
  type DownloadedFile,
  type Endpoint,
  type EndpointGroup,
  EventStream,
  type HandlersOf,
  hasNoBody,
  type StreamClient,
  Upload,
} from "./api/endpoint.ts";
import { InvalidInput, StartingUp } from "./problems.ts";

type Handler = (asked: Asked<Endpoint>) => unknown;

/** An endpoint with its handler, which is null until the part that it needs has been opened. */
export interface ServedEndpoint {
  readonly endpoint: Endpoint;
  handler(): Handler | null;
}

/** Null: the gateway is starting, and the endpoints answer 503. */
export function served<Group extends EndpointGroup>(
  group: Group,
  handlers: () => HandlersOf<Group> | null,
): readonly ServedEndpoint[] {
  return Object.entries(group).map(([name, endpoint]) => ({
    endpoint,
    // The type of each handler follows from the endpoint of the same name.
    handler: () => (handlers()?.[name] as Handler | undefined) ?? null,
  }));
}

/** The one who asks, as `Asked` has it. */
type Caller = Pick<Asked<Endpoint>, "person" | "csrfToken">;

interface Callers {
  callerOf(request: FastifyRequest): Caller;
  /** Whether the request would still be admitted; does not count as a use of its session. */
  isAdmitted(request: FastifyRequest): boolean;
}

/** Bytes of a JSON body. */
const JSON_BYTES_MAX = 4_000_000;

export function installEndpoints(app: FastifyInstance, endpoints: readonly ServedEndpoint[], callers: Callers): void {
  const isUpload = ({ endpoint }: ServedEndpoint) => endpoint.body instanceof Upload;
  for (const one of endpoints.filter((each) => !isUpload(each))) addRoute(app, one, callers);
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
    for (const one of endpoints.filter(isUpload)) addRoute(scope, one, callers);
  });
}

function addRoute(app: FastifyInstance, { endpoint, handler }: ServedEndpoint, callers: Callers): void {
  const { method, path, need } = endpoint;
  app.route({
    method,
    url: path,
    bodyLimit: endpoint.body instanceof Upload ? endpoint.body.bytesMax : JSON_BYTES_MAX,
    config: { need },
    async handler(request, reply) {
      const handle = handler();
      if (handle === null) throw new StartingUp();
      const gone = new AbortController();
      reply.raw.once("close", () => gone.abort());
      const answer = await handle({
        params: checked("the address", endpoint.params, request.params),
        query: checked("the query", endpoint.query, request.query),
        body: bodyOf(endpoint, request) as BodyOf<Endpoint>,
        ...callers.callerOf(request),
        signal: gone.signal,
      });
      if (endpoint.answer instanceof Download) return download(reply, endpoint.answer, answer as DownloadedFile);
      if (endpoint.answer instanceof EventStream)
        return stream(reply, answer as OpenStream, () => callers.isAdmitted(request));
      return reply.send(answer);
    },
  });
}

function bodyOf(endpoint: Endpoint, { body }: FastifyRequest): unknown {
  if (hasNoBody(endpoint)) return undefined;
  if (endpoint.body instanceof Upload) return limited(body, endpoint.body.bytesMax);
  const value = parsedJson(String(body ?? ""));
  if (value === undefined) throw new InvalidInput("the body is not JSON", []);
  return checked("the body", endpoint.body, value);
}

function checked(what: string, schema: Exclude<Endpoint["body"], Upload>, value: unknown): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  const words = errors.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  throw new InvalidInput(`${what} is not valid: ${words}`, errors);
}

async function* limited(body: unknown, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const part of (body as AsyncIterable<Uint8Array> | undefined) ?? []) {
    bytes += part.length;
    if (bytes > bytesMax)
      throw new RejectedError("HG-OPS-005", {
        operation: "take upload",
        subject: "body",
        message: `the upload has more than ${bytesMax} bytes`,
      });
    yield part;
  }
}

/** Never shown by a browser: a file of a drop may hold anything. */
function download(reply: FastifyReply, { type }: Download, { name, content }: DownloadedFile): FastifyReply {
  const ascii = name.replaceAll(/[^\w.() -]/g, "_");
  void reply.type(type).headers({
    "content-disposition": `attachment; filename="${ascii}"; filename*=UTF-8''${encoded(name)}`,
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  });
  if (typeof content === "string") return reply.send(Buffer.from(content));
  return reply.send(content instanceof Uint8Array ? Buffer.from(content) : Readable.from(content));
}

type OpenStream = (client: StreamClient) => void;

/** Bytes that a client may leave unread. */
const UNREAD_MAX = 262_144;

function stream(reply: FastifyReply, open: OpenStream, isAdmitted: () => boolean): FastifyReply {
  const { raw } = reply;
  const client: StreamClient = {
    isAdmitted,
    write(text) {
      if (raw.writableLength > UNREAD_MAX) raw.destroy();
      else raw.write(text);
    },
    end: () => void raw.end(),
    onGone: (react) => void raw.once("close", react),
  };
  const begin = () => {
    reply.hijack();
    const headers = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" };
    // For proxies, which otherwise collect an answer before they pass it on.
    raw.writeHead(200, { ...headers, "x-accel-buffering": "no", "x-content-type-options": "nosniff" });
  };
  let begun = false;
  open({
    ...client,
    write(text) {
      // A refusal of the stream is an answer of its own.
      if (!begun) begin();
      begun = true;
      client.write(text);
    },
  });
  return reply;
}

/** RFC 8187 leaves fewer characters than `encodeURIComponent`, which refuses half a character. */
function encoded(name: string): string {
  return encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
