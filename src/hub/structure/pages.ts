/** Conventions of collection endpoints (specification, *Conventions of collection endpoints*). */
import type { FastifyReply, FastifyRequest } from "fastify";
import { HttpProblem } from "#wire/http-problem.ts";
import { callerOf } from "../http/access.ts";
import { invalidField } from "../http/problems.ts";
import type { Listing, Page } from "../store/records.ts";

/** Page size when only a page number is given ("not shown"). */
const ITEMS_PER_PAGE_DEFAULT = 100;

/** The page of a single row. */
export const ONE: Page = { offset: 0, limit: 1 };

export interface PagingQuery {
  readonly "Paging.PageNumber"?: number | undefined;
  readonly "Paging.ItemsPerPage"?: number | undefined;
  readonly IncludeItemsCount?: boolean | undefined;
}

/** Page numbers count from 0; without paging, everything. */
export function pageOf(query: PagingQuery): Page {
  const number = query["Paging.PageNumber"];
  const items = query["Paging.ItemsPerPage"];
  if (number !== undefined && number < 0) throw invalidField("Paging.PageNumber", "counts from 0");
  if (items !== undefined && items < 1) throw invalidField("Paging.ItemsPerPage", "must be at least 1");
  if (number === undefined && items === undefined) return { offset: 0, limit: null };
  const limit = items ?? ITEMS_PER_PAGE_DEFAULT;
  const offset = (number ?? 0) * limit;
  if (!Number.isSafeInteger(offset)) throw invalidField("Paging.PageNumber", "is too large");
  return { offset, limit };
}

/** Requested by `IncludeItemsCount`, or by the request header that some clients send. */
export function wantsCount(request: FastifyRequest, query: PagingQuery): boolean {
  return query.IncludeItemsCount === true || request.headers["x-total-count"] === "true";
}

export function sendCount(reply: FastifyReply, total: number): void {
  void reply.header("x-total-count", String(total));
}

/** Singular and plural forms of a filter, joined; undefined when neither is given. */
export function both<Value>(
  one: readonly Value[] | undefined,
  many: readonly Value[] | undefined,
): readonly Value[] | undefined {
  return one === undefined && many === undefined ? undefined : [...(one ?? []), ...(many ?? [])];
}

export function pathId(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw invalidField("id", `${text} is no id`);
  return Number(text);
}

export function notFound(what: string, id: string): HttpProblem {
  return new HttpProblem(404, "not-found", `no ${what} ${id} in this account`);
}

export interface WithId {
  Params: { id: string };
}

/** The row of the caller's account with the id of the path. Throws a 404. */
export async function rowOfPath<Row>(
  list: (accountId: number, filter: { readonly ids: readonly number[] }, page: Page) => Promise<Listing<Row>>,
  request: FastifyRequest<WithId>,
  what: string,
): Promise<Row> {
  const { id } = request.params;
  const { rows } = await list(callerOf(request).accountId, { ids: [pathId(id)] }, ONE);
  if (rows[0] === undefined) throw notFound(what, id);
  return rows[0];
}
