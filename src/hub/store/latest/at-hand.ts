/**
 * Keeps at hand what requests for the latest points need: the facts of their variables, and the newest point of each.
 * Every answer first asks the database for two numbers of the account, of which one grows with each change of structure
 * and each removal of points, the other whenever readings are stored, in the same transaction, by whichever process.
 */
import { type Database, row, type StoreDialect } from "../database.ts";
import type { HeadAsk, HeadPage } from "../point-selection.ts";
import type { PointRow, VariableFacts } from "../records.ts";
import type { PointStore } from "../store.ts";

const ACCOUNTS_MAX = 50;
/** By estimation: the facts of a variable, its newest point with its text, and what holds them. */
const VARIABLE_BYTES = 700;
const SELECTION_BYTES = 500;
const KEPT_MAX_BYTES = 32 * 1024 * 1024;

/** Of an account, read at one moment or later. Replaced as a whole, so that nothing is added that was read before. */
interface AtHand {
  readonly changes: number;
  readonly written: number;
  readonly facts: Facts;
  /** By variable; mostly one point, or none. */
  readonly newest: Map<number, readonly PointRow[]>;
}

interface Facts {
  readonly byId: Map<number, VariableFacts>;
  /** By the text of the filter. */
  readonly selections: Map<string, readonly VariableFacts[]>;
  /** Of all selections, by estimation. */
  bytes: number;
}

export function withLatestAtHand(points: PointStore, { ask, dialect }: Database): PointStore {
  const accounts = new Accounts();
  const accountNow = async (accountId: number): Promise<AtHand> => {
    const found = await ask(() => row(numbersSql(dialect), accountId));
    return accounts.at(accountId, Number(found?.["changes"]), Number(found?.["written"]));
  };
  return {
    ...points,
    async select(accountId, filter) {
      if (accountId === null) return points.select(accountId, filter);
      const { facts } = await accountNow(accountId);
      const text = JSON.stringify(filter);
      const known = facts.selections.get(text);
      if (known !== undefined) return known;
      const found = (await points.select(accountId, filter)).map((one) => facts.byId.get(one.id) ?? one);
      accounts.keep(facts, text, found);
      return found;
    },
    async heads(asks, page) {
      const accountId = accountOf(asks, page);
      if (accountId === null) return points.heads(asks, page);
      const { facts, newest } = await accountNow(accountId);
      const missing = asks.filter(({ variable }) => !newest.has(variable.id) || !isKnown(facts, variable));
      if (missing.length === 0) return asks.map(({ variable }) => newest.get(variable.id) ?? []);
      const found = await points.heads(missing, page);
      const read = new Map(missing.map(({ variable }, index) => [variable.id, found[index] ?? []]));
      for (const { variable } of missing)
        if (isKnown(facts, variable)) newest.set(variable.id, read.get(variable.id) ?? []);
      return asks.map(({ variable }) => read.get(variable.id) ?? newest.get(variable.id) ?? []);
    },
  };
}

function numbersSql({ written }: StoreDialect): string {
  return `SELECT changes, ${written} AS written FROM structure_change WHERE account_id = ?`;
}

/** Facts that were selected before a change may be those of another table of points. */
function isKnown({ byId }: Facts, variable: VariableFacts): boolean {
  return byId.get(variable.id) === variable;
}

/** Of asks for the newest point alone, without its labels, of variables of one account; null of all others. */
function accountOf(asks: readonly HeadAsk[], { order, page, view, labels }: HeadPage): number | null {
  const isNewest = order === "DESC" && page.offset === 0 && page.limit === 1 && view.kind === "latest";
  const accountId = asks[0]?.variable.accountId;
  if (!isNewest || labels !== false || accountId === undefined) return null;
  const isWhole = ({ variable, fromMs, lastMs }: HeadAsk) =>
    variable.accountId === accountId && fromMs === null && lastMs === null;
  return asks.every(isWhole) ? accountId : null;
}

class Accounts {
  /** The ones asked for longest ago come first. */
  readonly #byId = new Map<number, AtHand>();

  at(accountId: number, changes: number, written: number): AtHand {
    const known = this.#byId.get(accountId);
    const facts = known?.changes === changes ? known.facts : { byId: new Map(), selections: new Map(), bytes: 0 };
    const isCurrent = known?.changes === changes && known.written === written;
    const now = isCurrent ? known : { changes, written, facts, newest: new Map() };
    this.#byId.delete(accountId);
    this.#byId.set(accountId, now);
    if (this.#byId.size > ACCOUNTS_MAX) this.#removeFirst();
    return now;
  }

  keep(facts: Facts, text: string, found: readonly VariableFacts[]): void {
    const bytes = SELECTION_BYTES + text.length + found.length * VARIABLE_BYTES;
    if (bytes > KEPT_MAX_BYTES) return;
    facts.selections.set(text, found);
    facts.bytes += bytes;
    for (const one of found) facts.byId.set(one.id, one);
    while (this.#bytes() > KEPT_MAX_BYTES) this.#removeFirst();
  }

  #bytes(): number {
    return this.#byId.values().reduce((sum, { facts }) => sum + facts.bytes, 0);
  }

  #removeFirst(): void {
    const [first] = this.#byId.keys();
    if (first !== undefined) this.#byId.delete(first);
  }
}
