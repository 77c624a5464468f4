/** The contract of calculated variables: their definitions, what they read, and what is due. */
import { type Calculated, calculated } from "#wire/index.ts";
import { type Database, type Row, row, rows, type Steps } from "../database.ts";
import type { VariableFacts } from "../records.ts";
import { factsOf, VARIABLE_FACTS } from "../structure-rows.ts";
import { type Mark, markDue } from "./marks.ts";

export interface CalculatedVariable {
  readonly variable: VariableFacts;
  readonly name: string;
  readonly definition: Calculated;
}

/** A calculated variable, and a variable that it reads. */
export interface CalculatedEdge {
  readonly calculatedId: number;
  readonly inputId: number;
  /** Whether new points of the input make the calculated variable due. */
  readonly isTrigger: boolean;
}

/** Where variables and sources are now. */
export interface InputPlaces {
  readonly variables: ReadonlyMap<number, { readonly siteId: number; readonly sourceId: number }>;
  /** The site of each source. */
  readonly sources: ReadonlyMap<number, number>;
}

export interface CalculatedStore {
  /** Whether any account has a calculated variable. */
  exists(): Promise<boolean>;
  /** In the order of their ids; without `ids` all of the account. */
  list(accountId: number, ids?: readonly number[]): Promise<readonly CalculatedVariable[]>;
  /** Every input of every calculated variable of the account. */
  graph(accountId: number): Promise<readonly CalculatedEdge[]>;
  places(accountId: number, variableIds: readonly number[], sourceIds: readonly number[]): Promise<InputPlaces>;
  /** Makes calculated variables of the account due. */
  mark(accountId: number, marks: readonly Mark[], nowMs: number): Promise<void>;
}

export function createCalculatedStore(database: Database): CalculatedStore {
  const { dialect } = database;
  return {
    exists: () =>
      database.ask(function* () {
        return (yield* row("SELECT 1 FROM variable WHERE calculated IS NOT NULL LIMIT 1")) !== undefined;
      }),
    list: (accountId, ids) =>
      database.ask(function* () {
        const among = ids === undefined ? "" : ` AND ${dialect.among("variable.id")}`;
        const sql = `SELECT variable.name, variable.calculated, ${VARIABLE_FACTS}
          WHERE variable.account_id = ? AND variable.calculated IS NOT NULL${among} ORDER BY variable.id`;
        return (yield* rows(sql, accountId, ...(ids === undefined ? [] : [ids]))).map(calculatedOf);
      }),
    graph: (accountId) => database.ask(() => graphOf(accountId)),
    places: (accountId, variableIds, sourceIds) =>
      database.ask(function* () {
        const { among } = dialect;
        const variables = yield* rows(
          `SELECT variable.id, source.id AS source_id, source.site_id FROM variable
            JOIN source ON source.id = variable.source_id WHERE variable.account_id = ? AND ${among("variable.id")}`,
          ...[accountId, variableIds],
        );
        const sources = yield* rows(
          `SELECT id, site_id FROM source WHERE account_id = ? AND ${among("id")}`,
          ...[accountId, sourceIds],
        );
        return {
          variables: new Map(
            variables.map((one) => [
              Number(one["id"]),
              { siteId: Number(one["site_id"]), sourceId: Number(one["source_id"]) },
            ]),
          ),
          sources: new Map(sources.map((one) => [Number(one["id"]), Number(one["site_id"])])),
        };
      }),
    mark: (accountId, marks, nowMs) =>
      database.write(function* () {
        yield* dialect.holdLane(accountId);
        yield* markDue(dialect, accountId, marks, nowMs);
      }),
  };
}

/** For use inside a write, too. */
export function* graphOf(accountId: number): Steps<readonly CalculatedEdge[]> {
  const sql = `SELECT calculated_id, variable_id, is_trigger FROM calculated_input WHERE account_id = ?
    ORDER BY calculated_id, variable_id`;
  return (yield* rows(sql, accountId)).map((one) => ({
    calculatedId: Number(one["calculated_id"]),
    inputId: Number(one["variable_id"]),
    isTrigger: Boolean(one["is_trigger"]),
  }));
}

function calculatedOf(one: Row): CalculatedVariable {
  return {
    variable: factsOf(one),
    name: String(one["name"]),
    definition: calculated.parse(JSON.parse(String(one["calculated"]))),
  };
}
