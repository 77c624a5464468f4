/** The baseline of reports of quality: `quality-bare.ts STORE` reads date and value of every point. */
import { DatabaseSync } from "node:sqlite";

const database = new DatabaseSync(process.argv[2] ?? "", { readOnly: true });
const ids = database.prepare("SELECT id FROM variable ORDER BY id").all();
const statement = database.prepare("SELECT at_ms, value FROM point WHERE variable_id = ? ORDER BY at_ms");
statement.setReturnArrays(true);
const began = performance.now();
let points = 0;
for (const { id } of ids) points += statement.all(Number(id)).length;
const seconds = (performance.now() - began) / 1_000;
process.stdout.write(`${JSON.stringify({ seconds, points })}\n`);
