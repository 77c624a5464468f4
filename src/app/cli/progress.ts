/** Prints the ledger's events as lines for a person who watches. */
import type { FileEvent } from "#gateway/gateway.ts";
import { type Style, styled, withReadableTime } from "./output.ts";

/** Events that are printed; `trace` shows all. */
const SHOWN: Readonly<Record<string, { words: string; style: Style }>> = {
  "arrival.settling": { words: "seen", style: "dim" },
  "arrival.unmatched": { words: "unmatched", style: "yellow" },
  "arrival.duplicate": { words: "duplicate", style: "yellow" },
  "run.fetched": { words: "fetched", style: "dim" },
  "run.opened": { words: "opened", style: "cyan" },
  "container.stays": { words: "stays", style: "yellow" },
  "run.mapped": { words: "mapped", style: "cyan" },
  "run.accepted": { words: "accepted", style: "green" },
  "run.confirmed": { words: "confirmed", style: "green" },
  "run.unconfirmed": { words: "unconfirmed", style: "yellow" },
  "run.empty": { words: "empty", style: "yellow" },
  "run.emptied": { words: "empty", style: "red" },
  "run.discarded": { words: "discarded", style: "red" },
  "run.quarantined": { words: "quarantined", style: "red" },
  "run.cancelled": { words: "cancelled", style: "yellow" },
  "run.waiting": { words: "waits", style: "yellow" },
  "source.archived": { words: "archived", style: "dim" },
  "source.deleted": { words: "deleted", style: "dim" },
};

const DETAIL_CHARACTERS = 90;

/** Prints a step of a file that does not pass through a gateway. */
export function printStep(
  step: { readonly at: string; readonly place: string; readonly path: string; readonly words: string },
  detail: string,
  say: (line: string) => void,
): void {
  const { at, place, path, words } = step;
  const time = styled("dim", at.slice(11, 19));
  say(`${time}  ${place.padEnd(10)} ${path.padEnd(34)} ${words.padEnd(11)} ${detail}`);
}

export function printProgress(event: FileEvent, say: (line: string) => void): void {
  const shown = SHOWN[event.what];
  if (shown === undefined) return;
  const time = event.at.slice(11, 19);
  const file = event.path.padEnd(34);
  const state = styled(shown.style, shown.words.padEnd(11));
  say(`${styled("dim", time)}  ${event.drop.padEnd(10)} ${file} ${state} ${detailOf(event)}`.trimEnd());
}

/** Without facts that the line has already, and short enough for a terminal. */
function detailOf(event: FileEvent): string {
  if (event.what === "arrival.unmatched") return "no trigger claims this name";
  const detail = withReadableTime(event.detail)
    .replace(`${event.path}, `, "")
    .replace(/, sha256 [0-9a-f]+$|, time \S+$/, "")
    .replace(`${event.path} → `, "as ");
  return detail.length > DETAIL_CHARACTERS ? `${detail.slice(0, DETAIL_CHARACTERS)}…` : detail;
}
