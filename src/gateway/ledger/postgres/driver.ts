/** Drives a unit of work on the ledger over one connection. */
import type { QueryResult } from "pg";
import { columnsOf, insertEach, numbered, selectEach, storable } from "#core/sql/postgres/translate.ts";
import type { EachStatement, Statement, Steps } from "../records/store.ts";

/** The part of `pg`'s clients that the driver uses. */
export interface Asked {
  query(question: {
    readonly name: string;
    readonly text: string;
    readonly values: unknown[];
    readonly rowMode?: "array";
  }): Promise<QueryResult>;
}

/**
 * Statements whose result the work does not need are sent behind one another without a wait; the first
 * failure is thrown, after all responses have arrived.
 */
export async function drive<T>(client: Asked, steps: Steps<T>): Promise<T> {
  const sent: Promise<void>[] = [];
  let first: { readonly thrown: unknown } | undefined;
  const noteFault = (thrown: unknown) => {
    first ??= { thrown };
  };
  try {
    let next = steps.next();
    while (next.done !== true) {
      const { want } = next.value;
      const answer = ask(client, next.value);
      if (want === "nothing" || want === "nothing each") {
        sent.push(answer.then(() => undefined, noteFault));
        next = steps.next(undefined);
      } else {
        next = steps.next(await answer);
      }
    }
    await Promise.all(sent);
    if (first !== undefined) throw first.thrown;
    return next.value;
  } catch (thrown) {
    await Promise.all(sent);
    throw first === undefined ? thrown : first.thrown;
  }
}

async function ask(client: Asked, statement: Statement): Promise<unknown> {
  if ("tuples" in statement) return askEach(client, statement);
  const { want, sql, values } = statement;
  const result = await client.query({
    ...prepared(sql, numbered),
    values: values.map(storable),
    ...(want === "cells" ? { rowMode: "array" as const } : {}),
  });
  if (want === "row") return result.rows[0];
  return want === "rows" || want === "cells" ? result.rows : (result.rowCount ?? 0);
}

async function askEach(client: Asked, { want, sql, types, tuples }: EachStatement): Promise<unknown> {
  const values = [...columnsOf(tuples, types.length)];
  if (want === "nothing each") {
    await client.query({ ...prepared(sql, (text) => insertEach(text, types), "each"), values });
    return undefined;
  }
  const question = prepared(sql, (text) => selectEach(text, types), "each");
  const { rows } = await client.query({ ...question, values, rowMode: "array" });
  return (rows as readonly (readonly unknown[])[]).map(([_place, ...found]) =>
    found.every((cell) => cell === null) ? undefined : found,
  );
}

type Prepared = Map<string, { readonly name: string; readonly text: string }>;
/** Prepared statements by their text, which may be used for one tuple of values and for many at once. */
const PREPARED: Readonly<Record<"one" | "each", Prepared>> = { one: new Map(), each: new Map() };

/**
 * Each connection parses the text once, under this name. The texts are those of the ledger's code, so they
 * are few.
 */
function prepared(sql: string, translate: (sql: string) => string, kind: keyof typeof PREPARED = "one") {
  const those = PREPARED[kind];
  let known = those.get(sql);
  if (known === undefined) {
    known = { name: `ledger-${kind}-${those.size + 1}`, text: translate(sql) };
    those.set(sql, known);
  }
  return known;
}
