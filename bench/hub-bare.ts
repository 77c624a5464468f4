/** The baseline: `node:sqlite` alone, a row a statement, a transaction a push: `hub-bare.ts DATABASE ORDERS_JSON`. */
import { DatabaseSync } from "node:sqlite";
import { BEGIN_MS, type Order, pieces, type Rectangle, STEP_MS, valueAt } from "./hub-data.ts";

const [path = "", ordersText = "[]", sizeText = "10000"] = process.argv.slice(2);
const orders = JSON.parse(ordersText) as readonly { readonly order: Order; readonly all: Rectangle }[];
const database = new DatabaseSync(path);
database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32000");
const insert = database.prepare("INSERT INTO point (variable_id, at_ms, value, origin_id) VALUES (?, ?, ?, 1)");
const rates = orders.map(({ order, all }) => {
  const began = performance.now();
  for (const piece of pieces(order, all, Number(sizeText))) writePiece(piece);
  return (all.variables * all.steps) / ((performance.now() - began) / 1_000);
});
database.close();
process.stdout.write(`${JSON.stringify(rates)}\n`);

function writePiece({ firstVariable, variables, firstStep, steps }: Rectangle): void {
  database.exec("BEGIN");
  for (let variable = firstVariable; variable < firstVariable + variables; variable += 1)
    for (let step = firstStep; step < firstStep + steps; step += 1)
      insert.run(variable, BEGIN_MS + step * STEP_MS, valueAt(variable, step));
  database.exec("COMMIT");
}
