/** Account 1 holds much of everything, by copies of the one that it has; and the work that requests cost is counted. */
import { DatabaseSync, StatementSync } from "node:sqlite";
import type { TestHub } from "../fixture.ts";
import { FIRST } from "./held.ts";

/** Rows of each table; of those that accounts may have few of, or that one entity has, `FEW`. */
const MANY = 5_000;
const FEW = 400;
const LIMITED = ["form", "view", "attribute_slice", "event_subscription", "alarm_template", "alarm_view"];
const LONG = 500;

/** By table: the columns of a copy that differ, as SQL; `n` counts the copies from 1. */
const COPIES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  site: { name: "'Site ' || n" },
  source: { name: "'Source ' || n", serial_number: "'S' || n", ean: "NULL", meter_number: "NULL", description: "long" },
  variable: { name: "'Variable ' || n", mapping_config: "'m' || n" },
  view: { name: "'View ' || n" },
  form: { name: "'Form ' || n", name_key: "'form ' || n" },
  file_trigger: { name: "'Trigger ' || n", token: "'00000000-0000-4000-8000-' || printf('%012d', n)" },
  stored_file: { name: "'file ' || n", base_name: "'file ' || n", state: "'stored'" },
  site_group: { name: "'Group ' || n" },
  attribute_slice: { from_ms: "from_ms + n * 86400000" },
  hub_user: {
    ...{ username: "'user ' || n", username_key: "'user ' || n" },
    ...{ email: "n || '@example.net'", email_key: "n || '@example.net'" },
  },
  audit: {},
  invitation: { email: "n || '@example.info'", email_key: "n || '@example.info'" },
  event_subscription: { name: "'Subscription ' || n" },
  calculation: {},
  alarm_template: { name: "'Template ' || n" },
  alarm_view: { name: "'View ' || n" },
};
const numbers = (most: number) =>
  `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${most})`;

export function holdMuch(hub: TestHub): void {
  const { store } = hub.options;
  if (store.kind !== "sqlite") throw new Error("what a request costs is counted with SQLite");
  const file = new DatabaseSync(store.path, { timeout: 30_000, enableForeignKeyConstraints: false });
  file.exec("BEGIN IMMEDIATE");
  const copy = (table: string, own: Readonly<Record<string, string>>, which: string) => {
    const names = file.prepare(`SELECT name FROM pragma_table_info('${table}')`).all();
    const columns = names.map(({ name }) => String(name)).filter((name) => name !== "id" || name in own);
    const values = columns.map((column) => (own[column] ?? column).replace("long", `'${"x".repeat(LONG)}'`));
    const from = `numbers, (SELECT * FROM ${table} WHERE ${which})`;
    const most = numbers(LIMITED.includes(table) ? FEW : MANY);
    file.exec(`INSERT INTO ${table} (${columns}) ${most} SELECT ${values} FROM ${from}`);
  };
  for (const [table, own] of Object.entries(COPIES)) copy(table, own, `id = ${FIRST}`);
  file.exec(`INSERT INTO membership (user_id, account_id, place, roles, origin)
    SELECT id, ${FIRST}, 0, '["User"]', 'people' FROM hub_user WHERE username LIKE 'user %'`);
  const last = Number(file.prepare(`SELECT last FROM event_counter WHERE account_id = ${FIRST}`).get()?.["last"]);
  copy("event", { id: `${last} + n` }, `account_id = ${FIRST} AND id = ${last}`);
  file.exec(`UPDATE event_counter SET last = last + ${MANY} WHERE account_id = ${FIRST}`);
  file.exec(
    `INSERT INTO point (variable_id, at_ms, value, origin_id) ${numbers(MANY)}
      SELECT ${FIRST}, n * 900000, n, 1 FROM numbers`,
  );
  file.exec("COMMIT");
  file.close();
}

export interface Work {
  /** Rows that statements returned or changed. */
  rows: number;
  /** Characters of JSON. */
  characters: number;
}

/** Counts the work of this thread between two turns of the event loop. */
export function countWork() {
  const turn: Work = { rows: 0, characters: 0 };
  const most: Work = { rows: 0, characters: 0 };
  const count = (kind: keyof Work, number: number) => {
    turn[kind] += number;
    most[kind] = Math.max(most[kind], turn[kind]);
  };
  const { prototype } = StatementSync;
  const { all, get, run, iterate } = prototype;
  const { stringify } = JSON;
  /** In the place of a method; `rowsOf` what it has returned. */
  const counting = <Method extends (...values: never[]) => unknown>(
    method: Method,
    rowsOf: (returned: ReturnType<Method>) => number,
  ) =>
    function (this: StatementSync, ...values: never[]) {
      const returned = method.apply(this, values) as ReturnType<Method>;
      count("rows", rowsOf(returned));
      return returned;
    } as Method;
  Object.assign(prototype, {
    all: counting(all as never, (rows: readonly unknown[]) => rows.length),
    get: counting(get as never, () => 1),
    run: counting(run as never, ({ changes }: { readonly changes: number }) => 1 + Number(changes)),
    iterate(this: StatementSync, ...values: never[]) {
      const rows = (iterate as (...all: never[]) => IteratorObject<unknown>).apply(this, values);
      return rows.map((row) => {
        count("rows", 1);
        return row;
      });
    },
  });
  JSON.stringify = (...values: never[]) => {
    const text = (stringify as (...all: never[]) => string)(...values);
    count("characters", text?.length ?? 0);
    return text;
  };
  let next: NodeJS.Immediate;
  const clear = () => {
    turn.rows = 0;
    turn.characters = 0;
    next = setImmediate(clear);
  };
  next = setImmediate(clear);
  return {
    most,
    reset() {
      for (const one of [turn, most]) one.rows = one.characters = 0;
    },
    end() {
      clearImmediate(next);
      Object.assign(prototype, { all, get, run, iterate });
      JSON.stringify = stringify;
    },
  };
}
