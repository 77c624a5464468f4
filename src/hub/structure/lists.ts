/**
 * Lists are answered in parts: memory holds one, and other requests have their turn between two. A part continues
 * behind the last row of the one before, so that rows which come or go meanwhile neither hide nor repeat others.
 */
import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Listing, Page } from "../store/records.ts";
import { type PagingQuery, pageOf, sendCount, wantsCount } from "./pages.ts";

export type RowsOf<Row> = (page: Page) => Promise<Listing<Row>>;

export interface ShownList<Row> {
  readonly rows: RowsOf<Row>;
  /** As answers show them. */
  readonly shown: (rows: readonly Row[]) => readonly unknown[] | Promise<readonly unknown[]>;
  /** The key that `Page.after` takes; null: the list has no such order, and parts are counted from its beginning. */
  readonly keyOf: ((row: Row) => number) | null;
}

const FIRST_ROWS = 50;
/** Of parts whose rows are of any length. */
const PART_ROWS = 200;
const ROWS_MIN = 10;
const ROWS_MAX = 1_000;
/** Parts have as many rows as come to about this. */
const PART_CHARACTERS = 262_144;

/** Sends the rows of the page that the query asks for, which without paging is all of them. */
export async function sendList<Row>(
  request: FastifyRequest,
  reply: FastifyReply,
  query: PagingQuery,
  list: ShownList<Row>,
): Promise<FastifyReply> {
  const page = pageOf(query);
  const isCounted = wantsCount(request, query);
  const texts = textsOf(list, page, isCounted ? (total) => sendCount(reply, total) : null);
  return sendTexts(reply, texts);
}

const ARRAY = { begin: "[", end: "]" };

/** Sends rows, which come as JSON with commas between them and are never empty texts, as one array. */
export async function sendTexts(
  reply: FastifyReply,
  texts: AsyncGenerator<string, void>,
  around = ARRAY,
): Promise<FastifyReply> {
  const first = await texts.next();
  const second = await texts.next();
  void reply.type("application/json; charset=utf-8");
  // Most answers are one part, which needs no stream.
  if (second.done === true) return reply.send(around.begin + (first.value ?? "") + around.end);
  return reply.send(Readable.from(joined(`${around.begin}${first.value},${second.value}`, texts, around.end)));
}

async function* joined(begun: string, rest: AsyncGenerator<string, void>, end: string): AsyncGenerator<string> {
  try {
    yield begun;
    for await (const text of rest) yield `,${text}`;
    yield end;
  } finally {
    // A client that leaves early ends what is read for it.
    await rest.return();
  }
}

/** Rows as JSON with commas between them, never none. */
async function* textsOf<Row>(
  { rows, shown, keyOf }: ShownList<Row>,
  page: Page,
  count: ((total: number) => void) | null,
): AsyncGenerator<string, void> {
  let wanted = FIRST_ROWS;
  for await (const part of partsOf(rows, page, { keyOf, size: () => wanted, count })) {
    const text = (await shown(part)).map((row) => JSON.stringify(row)).join(",");
    wanted = Math.floor((part.length * PART_CHARACTERS) / Math.max(text.length, 1));
    if (text !== "") yield text;
  }
}

interface Parts<Row> {
  readonly keyOf: ((row: Row) => number) | null;
  /** Rows of the next part. */
  readonly size?: () => number;
  /** Gets the number of all rows, before the first part. */
  readonly count?: ((total: number) => void) | null;
}

/** The rows of a page, in parts. */
export async function* partsOf<Row>(
  rows: RowsOf<Row>,
  { offset, limit }: Page,
  { keyOf, size = () => PART_ROWS, count = null }: Parts<Row>,
): AsyncGenerator<readonly Row[], void> {
  let read = 0;
  let last: Row | undefined;
  for (;;) {
    const left = limit === null ? Number.POSITIVE_INFINITY : limit - read;
    const asked = Math.min(left, Math.max(ROWS_MIN, Math.min(ROWS_MAX, size())));
    const isCounted = count !== null && read === 0;
    const place =
      last === undefined ? { offset } : keyOf === null ? { offset: offset + read } : { offset: 0, after: keyOf(last) };
    const part = await rows({ ...place, limit: asked, isCounted });
    if (isCounted) count(part.total);
    yield part.rows;
    read += part.rows.length;
    last = part.rows.at(-1);
    if (part.rows.length < asked || read === limit) return;
    await setImmediate();
  }
}
