/** Drops: the state of their polls, their check, the host keys of their servers, and files that a person puts there. */
import { z } from "zod";
import { endpoint, Upload } from "./endpoint.ts";
import { instant } from "./state.ts";

const tag = "Drops";

/** Bytes of a file that a person puts into a drop. */
const UPLOAD_BYTES_MAX = 500_000_000;

const params = z.strictObject({ name: z.string().min(1) });

export const dropFacts = z.object({
  drop: z.string(),
  kind: z.string(),
  address: z.string().nullable().describe("Of the folder or the server, without secrets."),
  lastCompletePoll: instant.nullable(),
  completePolls: z.number(),
  paused: z.string().nullable().describe("Why it is not polled: a person's pause, or another node that polls it."),
  consecutiveFailures: z.number(),
  lastError: z.object({ code: z.string().nullable(), message: z.string(), hint: z.string().nullable() }).nullable(),
  nextPollAt: instant.nullable().describe("Null while it is polled."),
  inProgress: z.boolean(),
  settlingCount: z.number().describe("Files that will be taken when they no longer change."),
  temporaryCount: z.number().describe("Files under temporary names, or without their done-file."),
  overdueCount: z.number().describe("Files that wait longer than the limit of the drop."),
  leftCount: z.number().describe("Settled files for the next poll."),
  missingCount: z.number(),
  eventsArrive: z.boolean().nullable(),
  lastFile: z.object({ path: z.string(), at: instant }).nullable().describe("Among the newest 20,000 of all drops."),
  hostKey: z
    .enum(["none", "trusted", "refused", "unknown"])
    .describe("refused: nothing is sent until a person approves the server's key; unknown: not connected yet."),
  takesUploads: z.boolean().describe("Whether a file can be put into it here."),
});
export type DropFacts = z.output<typeof dropFacts>;

const finding = z.object({
  level: z.enum(["ok", "warning", "failed"]),
  about: z.string(),
  what: z.string(),
  hint: z.string().nullable(),
});

const hostKeys = z.object({
  known: z.array(
    z.object({
      type: z.string().nullable().describe("Null for a pin, which names only the fingerprint."),
      fingerprint: z.string(),
      trustedBy: z.string(),
    }),
  ),
  offered: z.object({
    type: z.string(),
    fingerprint: z.string().describe("Of the key that the server presents now."),
    isTrusted: z.boolean(),
    isRevoked: z.boolean(),
  }),
});

export const dropEndpoints = {
  drops: endpoint({
    method: "GET",
    path: "/operations/drops",
    need: "read",
    tag,
    summary: "The state of each drop's polls",
    answer: z.array(dropFacts),
  }),
  check: endpoint({
    method: "POST",
    path: "/operations/drops/:name/check",
    need: "command",
    tag,
    summary: "Tries a drop as `headgate check` does: connection, listing, rights, clock, and triggers",
    params,
    answer: z.array(finding),
  }),
  hostKey: endpoint({
    method: "GET",
    path: "/operations/drops/:name/host-key",
    need: "read",
    tag,
    summary: "The host keys that an SFTP drop trusts, and the one that its server presents now",
    description: "Connects to the server and sends it nothing, not even a user name.",
    params,
    answer: hostKeys,
  }),
  approveHostKey: endpoint({
    method: "POST",
    path: "/operations/drops/:name/host-key",
    need: "command",
    tag,
    summary: "Trusts the key that the server presents now, if it has this fingerprint, and polls the drop",
    params,
    body: z.strictObject({ fingerprint: z.string().startsWith("SHA256:") }),
    answer: hostKeys,
  }),
  addFile: endpoint({
    method: "POST",
    path: "/operations/drops/:name/files",
    need: "command",
    tag,
    summary: "Puts a file into a local drop or an HTTP intake, whole or not at all; it never replaces another",
    params,
    query: z.strictObject({ name: z.string().min(1).max(255) }),
    body: new Upload(UPLOAD_BYTES_MAX),
    answer: z.object({ path: z.string(), bytes: z.number() }),
  }),
} as const;
