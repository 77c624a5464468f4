/** The PostgreSQL of the test run: the first call starts it; each test file takes a database of its own. */
import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { Client } from "pg";
import { inject } from "vitest";

export interface TestDatabase {
  /** Such as `postgres://postgres:secret@127.0.0.1:41234/headgate_1f2e3d`. Its user may do anything. */
  readonly url: string;
  /** Statements beside the code under test, on a connection of their own. */
  query(sql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  /** Ends who is still connected. */
  drop(): Promise<void>;
}

/** An empty database. */
export async function openTestDatabase(): Promise<TestDatabase> {
  const server = await serverUrl();
  const name = `headgate_${randomBytes(6).toString("hex")}`;
  await queryOnce(server, `CREATE DATABASE ${name}`);
  const url = server.replace(/\/postgres$/, `/${name}`);
  return {
    url,
    query: (sql, values) => queryOnce(url, sql, values),
    drop: async () => void (await queryOnce(server, `DROP DATABASE ${name} WITH (FORCE)`)),
  };
}

async function queryOnce(
  url: string,
  sql: string,
  values: readonly unknown[] = [],
): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql, [...values])).rows;
  } finally {
    await client.end();
  }
}

function serverUrl(): Promise<string> {
  return new Promise((resolve, reject) => {
    request(inject("postgresStarter"), { agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => (response.statusCode === 200 ? resolve(text) : reject(new Error(text))));
    })
      .on("error", reject)
      .end();
  });
}
