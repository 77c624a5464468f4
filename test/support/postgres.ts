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

/**
 * Another user of the database, who may do anything and whose commits do not wait for the disk, as a role can
 * be configured.
 */
export async function hastyUser(database: TestDatabase): Promise<{ readonly url: string }> {
  const name = `hasty_${randomBytes(6).toString("hex")}`;
  await database.query(`CREATE ROLE ${name} LOGIN SUPERUSER PASSWORD 'hasty'`);
  await database.query(`ALTER ROLE ${name} SET synchronous_commit = off`);
  const url = new URL(database.url);
  url.username = name;
  url.password = "hasty";
  return { url: url.href };
}

/** From now on every change in the schema notes how its commit waits for the disk: the tables by that word. */
export async function watchCommits(
  { query }: TestDatabase,
  schema: string,
): Promise<() => Promise<Readonly<Record<string, readonly string[]>>>> {
  const seen = `seen_${randomBytes(6).toString("hex")}`;
  await query(`CREATE TABLE public.${seen} (commits TEXT, relation TEXT, UNIQUE (commits, relation))`);
  await query(`CREATE FUNCTION public.${seen}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO public.${seen} VALUES (current_setting('synchronous_commit'), TG_TABLE_NAME) ON CONFLICT DO NOTHING;
    RETURN NULL; END $$`);
  const tables = await query(
    "SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', " +
      "'p') AND NOT relispartition",
    [schema],
  );
  for (const { relname } of tables)
    await query(`CREATE TRIGGER seen AFTER INSERT OR UPDATE OR DELETE ON ${schema}.${String(relname)}
      FOR EACH STATEMENT EXECUTE FUNCTION public.${seen}()`);
  return async () => {
    const rows = await query(`SELECT commits, relation FROM public.${seen} ORDER BY relation`);
    const byWord = Object.groupBy(rows, ({ commits }) => String(commits));
    return Object.fromEntries(
      Object.entries(byWord).map(([word, found = []]) => [word, found.map((row) => String(row["relation"]))]),
    );
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
