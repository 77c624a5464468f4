/**
 * An endpoint of the operations API: its address, the right that it requires, and the shapes of input and answer. The
 * files beside this one describe all endpoints and hold nothing else, so that code for browsers can import their types.
 */
import { z } from "zod";

/** `read` is for viewers, and tokens that have it; `command` for operators, and the secret of the endpoint file. */
export type Need = "read" | "command";

/** The one who asks: a person who has signed in, or a program, by the name of its token. */
export interface Person {
  readonly name: string;
  readonly role: Role;
}
export const ROLES = ["viewer", "operator"] as const;
export type Role = (typeof ROLES)[number];

/** The body of a request, taken as it comes; one with more bytes than `bytesMax` is refused while it is read. */
export class Upload {
  readonly kind = "upload";
  readonly bytesMax: number;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }
}

/** An answer of bytes, which a browser saves as a file and never shows. */
export class Download {
  readonly kind = "download";
  /** Media type; `application/octet-stream` by default. */
  readonly type: string;

  constructor(type = "application/octet-stream") {
    this.type = type;
  }
}

/** An answer that lasts: server-sent events, by their names with the shapes of their data. */
export class EventStream {
  readonly kind = "events";
  readonly events: Readonly<Record<string, z.ZodType>>;

  constructor(events: Readonly<Record<string, z.ZodType>>) {
    this.events = events;
  }
}

/** A client of an event stream. */
export interface StreamClient {
  /** A client that does not read is disconnected. */
  write(text: string): void;
  end(): void;
  onGone(react: () => void): void;
  /** False when the session has ended since. */
  isAdmitted(): boolean;
}

export interface DownloadedFile {
  /** The name under which it is saved; characters that a header cannot hold are encoded. */
  readonly name: string;
  readonly content: string | Uint8Array | AsyncIterable<Uint8Array>;
}

export interface Endpoint<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType | Upload = z.ZodType | Upload,
  Answer extends z.ZodType | Download | EventStream = z.ZodType | Download | EventStream,
> {
  readonly method: "GET" | "POST";
  /** Below the address of the operations API, such as `/operations/files/:id`. */
  readonly path: string;
  readonly need: Need;
  /** The heading under which the documentation shows it. */
  readonly tag: string;
  /** One line. */
  readonly summary: string;
  readonly description?: string;
  readonly params: Params;
  /** Each value is a text, or a list of them; unknown names are refused. */
  readonly query: Query;
  readonly body: Body;
  readonly answer: Answer;
}

const NOTHING = z.strictObject({});
type Nothing = typeof NOTHING;
const NO_BODY = z.unknown();
type NoBody = typeof NO_BODY;

type Given<Params, Query, Body, Answer> = Pick<Endpoint, "method" | "path" | "need" | "tag" | "summary"> & {
  readonly description?: string;
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  readonly answer: Answer;
};

/** Without `params`, `query` or `body` the endpoint takes none. */
export function endpoint<
  Answer extends z.ZodType | Download | EventStream,
  Params extends z.ZodType = Nothing,
  Query extends z.ZodType = Nothing,
  Body extends z.ZodType | Upload = NoBody,
>(given: Given<Params, Query, Body, Answer>): Endpoint<Params, Query, Body, Answer> {
  const { params = NOTHING, query = NOTHING, body = NO_BODY, ...facts } = given;
  return { ...facts, params, query, body } as Endpoint<Params, Query, Body, Answer>;
}

/** True for an endpoint that was made without a body. */
export function hasNoBody({ body }: Pick<Endpoint, "body">): boolean {
  return body === NO_BODY;
}

export type EndpointGroup = Readonly<Record<string, Endpoint>>;

/** A value as it is sent: nothing of it is changed by the one who gets it. */
export type Shown<Value> = Value extends readonly (infer Item)[]
  ? readonly Shown<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: Shown<Value[Key]> }
    : Value;

export type ParamsOf<E extends Endpoint> = Shown<z.output<E["params"]>>;
/** With all defaults; what a browser may give is `QueryGivenOf`. */
export type QueryOf<E extends Endpoint> = Shown<z.output<E["query"]>>;
export type QueryGivenOf<E extends Endpoint> = Shown<z.input<E["query"]>>;
export type BodyOf<E extends Endpoint> = E["body"] extends z.ZodType
  ? Shown<z.output<E["body"]>>
  : AsyncIterable<Uint8Array>;
export type BodyGivenOf<E extends Endpoint> = E["body"] extends z.ZodType ? Shown<z.input<E["body"]>> : Uint8Array;
export type AnswerOf<E extends Endpoint> = E["answer"] extends z.ZodType
  ? Shown<z.output<E["answer"]>>
  : E["answer"] extends EventStream
    ? (client: StreamClient) => void
    : DownloadedFile;

export interface Asked<E extends Endpoint> {
  readonly params: ParamsOf<E>;
  readonly query: QueryOf<E>;
  readonly body: BodyOf<E>;
  readonly person: Person;
  /** Of the session; null for programs. */
  readonly csrfToken: string | null;
  /** Aborted when the client has gone, for work that is worth stopping then. */
  readonly signal: AbortSignal;
}

/**
 * Returns the answer, or throws: `RejectedError` (409; with `HG-OPS-004` 404), `ConfigError` (400), `TransientError`
 * (503). It may run any number of times at once.
 */
export type HandlerOf<E extends Endpoint> = (asked: Asked<E>) => Promise<AnswerOf<E>> | AnswerOf<E>;
export type HandlersOf<Group extends EndpointGroup> = { readonly [Name in keyof Group]: HandlerOf<Group[Name]> };

/** A number in a query, cut to `max` when it is larger. */
export function count(max: number, byDefault: number) {
  return z.coerce
    .number()
    .int()
    .min(1)
    .default(byDefault)
    .transform((value) => Math.min(value, max));
}

/** Values in a query, divided by commas. */
export function listOf<Item extends z.ZodType<unknown, string>>(item: Item) {
  return z
    .string()
    .transform((text) => text.split(",").filter((one) => one !== ""))
    .pipe(z.array(item));
}

/** A moment in a query: an instant with `Z` or an offset, or a date, which begins in UTC; read as an instant in UTC. */
export function moment() {
  return z
    .union([z.iso.date(), z.iso.datetime({ offset: true })], {
      error: "expected a date such as 2026-03-01, or an instant such as 2026-03-01T00:00:00Z",
    })
    .transform((text) => new Date(text).toISOString())
    .refine((text) => /^\d{4}-/.test(text), "the year must have four digits");
}
