/** The body of a push, refused as a problem that names the path. */
import { PushBodyFault, type PushElement, readPushBody as read } from "../../wire/index.ts";
import { HttpProblem, invalidRequest } from "../http/problems.ts";

export { countReadings } from "../../wire/index.ts";

/** Throws a 400 that names the path. */
export function readPushBody(bytes: Uint8Array): readonly PushElement[] {
  try {
    return read(bytes);
  } catch (thrown) {
    if (!(thrown instanceof PushBodyFault)) throw thrown;
    if (thrown.path === null) throw new HttpProblem(400, "invalid-json", thrown.message);
    throw invalidRequest(thrown.message, [{ path: thrown.path, message: thrown.words }]);
  }
}
