/** The words of drops. */
import { many } from "./numbers.ts";

export const DROPS = {
  none: "There are no drops.",
  unknown: "There is no drop",
  columns: {
    ...{ drop: "Drop", state: "State", lastPoll: "Last poll", nextPoll: "Next poll", lastFile: "Last file" },
    waiting: "Files waiting",
  },
  polling: "Being polled",
  polls: "Polls",
  failures: (count: number) => `${many(count, "failure", "failures")} one after the other`,
  kind: "Kind",
  address: "Address",
  nothing: "none",
  never: "never",
  counts: {
    settling: (count: string) => `${count} settling`,
    left: (count: string) => `${count} for the next poll`,
    temporary: (count: string) => `${count} under temporary names`,
    overdue: (count: string) => `${count} overdue`,
    missing: (count: string) => `${count} missing`,
  },
  files: "Files of this drop",
  check: "Check",
  checkHint: "Tries connection, listing, rights and clock, as `headgate check` does. Nothing is fetched.",
  checkNow: "Check this drop",
  checking: "The drop is checked …",
  checked: (parts: string, open: number) =>
    `${parts}. ${open === 0 ? "Nothing needs" : many(open, "finding needs", "findings need")} attention.`,
  asBefore: "As at the check before.",
  levels: { ok: "In order", warning: "Warning", failed: "Failed" },
  hostKey: "Host key",
  hostKeys: {
    none: "This drop does not compare host keys.",
    trusted: "The key of the server is trusted.",
    refused: "The server presents another key. Nothing is sent to it until that key is approved.",
    unknown: "The server was not reached yet.",
  },
  compare: "Compare the keys",
  known: "Trusted until now",
  noKnown: "None",
  offered: "Presented now",
  trusted: "Trusted",
  untrusted: "Not trusted",
  revoked: "This key was revoked.",
  keyWarning:
    "Ask the operator of the server for the fingerprint by another way, and compare it: the key also differs when " +
    "another machine poses as the server.",
  approve: "Approve the new key…",
  approveTitle: "Approve the new host key",
  approveWords: "From now on the drop trusts the server with this fingerprint:",
  approveNow: "Approve this key",
  upload: "Put a file there",
  uploadLabel: "Choose a file of this computer, or drop it here",
  uploaded: (size: string) => `Sent (${size}):`,
};
