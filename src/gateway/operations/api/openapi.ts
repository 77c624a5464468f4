/** The document of the operations API (OpenAPI 3.1), derived from its endpoints. */
import { z } from "zod";
import { Download, type Endpoint, EventStream, hasNoBody, Upload } from "./endpoint.ts";

type Json = Readonly<Record<string, unknown>>;

const STATUS_WORDS: Readonly<Record<number, string>> = {
  400: "The request is not valid; `errors` names each field.",
  401: "No session, and no valid token.",
  403: "The role or the token lacks the right.",
  404: "No such thing is known.",
  409: "It cannot be done; `detail` says why, and `hint` what can.",
  413: "The body is too large.",
  503: "It cannot be done now; try again later.",
};

const problem = z.object({
  title: z.string(),
  status: z.number(),
  code: z.string().optional().describe("Of the register of errors, such as HG-OPS-004."),
  detail: z.string(),
  hint: z.string().optional().describe("The next step that a person can take."),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});

export function openApi(endpoints: readonly Endpoint[]): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const endpoint of endpoints) {
    const path = templateOf(endpoint);
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operationOf(endpoint) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Headgate operations API",
      version: "1",
      description:
        "The gateway's work for people and programs. `x-need` of an operation: read (viewers, tokens) or command " +
        "(operators, the secret of the file beside the ledger).",
    },
    servers: [{ url: "/" }],
    tags: [...new Set(endpoints.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: { Problem: schemaOf(problem) },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: "headgate-console-<port>" },
      },
    },
    security: [{ bearer: [] }, { session: [] }],
  };
}

/** `/operations/files/:id` as `/operations/files/{id}`. */
function templateOf({ path }: Endpoint): string {
  return path.replaceAll(/:(\w+)/g, "{$1}");
}

function operationOf(endpoint: Endpoint): Json {
  const { method, need, tag, summary, description, params, query, body, answer } = endpoint;
  const template = templateOf(endpoint);
  const name = template.replaceAll(/[^A-Za-z0-9]+(\w?)/g, (_, next: string) => next.toUpperCase());
  const statuses = [
    400,
    401,
    403,
    ...(template.includes("{") ? [404] : []),
    ...(hasNoBody(endpoint) ? [] : [409, 413]),
  ];
  return {
    operationId: method.toLowerCase() + name,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    "x-need": need,
    parameters: [...parametersOf("path", params), ...parametersOf("query", query)],
    ...(hasNoBody(endpoint) ? {} : { requestBody: { required: true, content: contentOf(body) } }),
    responses: {
      200: { description: "Done.", content: contentOf(answer) },
      ...Object.fromEntries([...statuses, 503].map((status) => [status, problemOf(status)])),
    },
  };
}

function contentOf(body: Endpoint["body"] | Endpoint["answer"]): Json {
  if (body instanceof Upload) return { "application/octet-stream": {} };
  if (body instanceof Download) return { [body.type]: {} };
  if (body instanceof EventStream)
    return { "text/event-stream": { schema: schemaOf(z.object(body.events).partial()) } };
  return { "application/json": { schema: schemaOf(body) } };
}

function problemOf(status: number): Json {
  return {
    description: STATUS_WORDS[status],
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
  };
}

function parametersOf(place: "path" | "query", schema: z.ZodType): Json[] {
  const { properties = {}, required = [] } = schemaOf(schema) as ObjectSchema;
  return Object.entries(properties).map(([name, { description, ...own }]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: own,
  }));
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly description?: string } & Json>>;
  readonly required?: readonly string[];
}

function schemaOf(schema: z.ZodType): Json {
  const { $schema: _, ...own } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" });
  return own;
}
