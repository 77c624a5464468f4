/** Reads the body of a push; a refusal is a problem that names the path. */

import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import { PushBodyFault, readPushParts, scanReadings, type UnknownNames } from "#wire/index.ts";

/** The event loop runs after so many elements and readings: some milliseconds. */
const YIELD_EVERY = 10_000;

/** Number of readings; `unknown` gets the fields that no push has. Throws a 400 that names the path. */
export async function countReadings(bytes: Uint8Array, unknown: UnknownNames = new Map()): Promise<number> {
  // Most bodies have the form that is counted at a third of the cost of parsing.
  const scan = scanReadings(bytes);
  for (let turn = scan.next(); ; turn = scan.next()) {
    if (turn.done !== true) await yieldTurn();
    else if (turn.value === null) break;
    else return turn.value;
  }
  return countParsed(bytes, unknown);
}

const yieldTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function countParsed(bytes: Uint8Array, unknown: UnknownNames): Promise<number> {
  let received = 0;
  let sinceYield = 0;
  try {
    for (const { data } of readPushParts(bytes, undefined, unknown)) {
      received += data.length;
      sinceYield += 1 + data.length;
      if (sinceYield < YIELD_EVERY) continue;
      sinceYield = 0;
      await yieldTurn();
    }
    return received;
  } catch (thrown) {
    if (!(thrown instanceof PushBodyFault)) throw thrown;
    if (thrown.path === null) throw new HttpProblem(400, "invalid-json", thrown.message);
    throw invalidRequest(thrown.message, [{ path: thrown.path, message: thrown.words }]);
  }
}
