/** The body of a push, refused as a problem that names the path. */
import { PushBodyFault, readPushParts, scanReadings } from "../../wire/index.ts";
import { HttpProblem, invalidRequest } from "../http/problems.ts";

/** Others have their turn at the event loop after so many elements and readings: some milliseconds. */
const BREATH = 10_000;

/** How many readings it holds. Throws a 400 that names the path. */
export async function countReadings(bytes: Uint8Array): Promise<number> {
  // Most bodies are of the form that is counted at a third of the cost of parsing.
  const scan = scanReadings(bytes);
  for (let turn = scan.next(); ; turn = scan.next()) {
    if (turn.done !== true) await othersTurn();
    else if (turn.value === null) break;
    else return turn.value;
  }
  return countParsed(bytes);
}

const othersTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function countParsed(bytes: Uint8Array): Promise<number> {
  let received = 0;
  let breathless = 0;
  try {
    for (const { data } of readPushParts(bytes)) {
      received += data.length;
      breathless += 1 + data.length;
      if (breathless < BREATH) continue;
      breathless = 0;
      await othersTurn();
    }
    return received;
  } catch (thrown) {
    if (!(thrown instanceof PushBodyFault)) throw thrown;
    if (thrown.path === null) throw new HttpProblem(400, "invalid-json", thrown.message);
    throw invalidRequest(thrown.message, [{ path: thrown.path, message: thrown.words }]);
  }
}
