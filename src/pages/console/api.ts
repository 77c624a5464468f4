/** The operations API, as the session of this browser may use it. */
import { addressWith, answerOf, type Parameters } from "../kit/browser/api.ts";
import { TEXTS } from "./texts.ts";

export { Problem, SessionEnded } from "../kit/browser/api.ts";
export type { Parameters };

/** `path` as in `/files`. A proxy may put the gateway below a path, which the page knows. */
export function addressOf(path: string, parameters?: Parameters): string {
  return addressWith(`${BASE}/operations${path}`, parameters);
}

export const BASE = document.getElementById("console")?.dataset["base"] ?? "";

export async function get<Answer>(path: string, parameters?: Parameters, signal?: AbortSignal): Promise<Answer> {
  const answer = await answerOf(addressOf(path, parameters), { signal, unreachable: TEXTS.faults.unreachable });
  return (await answer.json()) as Answer;
}

/** `body`: JSON, or a file that is sent as it is. */
export async function post<Answer>(
  path: string,
  body: unknown,
  { parameters, signal }: { readonly parameters?: Parameters; readonly signal?: AbortSignal } = {},
): Promise<Answer> {
  const { unreachable } = TEXTS.faults;
  const answer = await answerOf(addressOf(path, parameters), { method: "POST", body, signal, unreachable });
  const text = await answer.text();
  return (text === "" ? null : JSON.parse(text)) as Answer;
}
