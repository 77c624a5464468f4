/** Handlers of the endpoints about drops. */

import { isoInstant } from "#core/clock.ts";
import { RejectedError } from "#core/errors.ts";
import type { GatewayConfig } from "../config.ts";
import { checkDrop } from "../drop-check.ts";
import { whyNoUploads } from "../drops/put-file.ts";
import { approveHostKey, type HostKeyState, hostKeyState } from "../drops/sftp/approval.ts";
import type { DropState } from "../model.ts";
import type { DropFacts, dropEndpoints } from "../operations/api/drops.ts";
import type { HandlersOf } from "../operations/api/endpoint.ts";
import { unknownSubject } from "../operations/problems.ts";
import type { QueryParts } from "./parts.ts";

type DropParts = Pick<QueryParts, "ledger" | "drops" | "triggers" | "clock" | "log">;
type DropOptions = GatewayConfig["drops"][number];

/** Milliseconds; a server that answers so slowly has been found out about by then. */
const CHECK_MS = 120_000;
const HOST_KEY_REFUSED = "HG-DROP-004";

export function dropHandlers(config: GatewayConfig, parts: DropParts): HandlersOf<typeof dropEndpoints> {
  const { ledger, drops, triggers, clock, log } = parts;
  const optionsOf = (name: string): DropOptions => {
    const found = config.drops.find((one) => one.name === name);
    if (found !== undefined) return found;
    throw unknownSubject({ operation: "find drop", subject: name, message: `there is no drop ${name}` });
  };
  const poll = (name: string) => {
    const watcher = drops.watchers().find((one) => one.status().drop === name);
    // The status of the drop reports its faults.
    watcher?.pollNow().catch(() => undefined);
  };
  return {
    drops: () => Promise.all(drops.statuses().map((state) => factsOf(state, config, parts))),
    async check({ params, signal }) {
      const options = optionsOf(params.name);
      if (options.kind === "hub") throw ofHub(options.name);
      const stop = AbortSignal.any([signal, AbortSignal.timeout(CHECK_MS)]);
      const findings = await checkDrop({ config, ledger, registry: triggers.registry }, options, stop);
      return findings.map(({ hint = null, ...one }) => ({ ...one, hint }));
    },
    hostKey: async ({ params, signal }) => shownKeys(await hostKeyState(sftpOf(optionsOf(params.name)), signal)),
    async approveHostKey({ params, body, person, signal }) {
      const approval = { ...body, by: person.name, at: isoInstant(clock.now()) };
      const keep = (lines: string) => ledger.approvedKeys.keep({ drop: params.name, lines, approvedAt: approval.at });
      const state = await approveHostKey(sftpOf(optionsOf(params.name)), { ...approval, keep }, signal);
      log.warn({ drop: params.name, ...approval }, "a person approved the host key of a drop's server");
      poll(params.name);
      return shownKeys(state);
    },
    async addFile({ params, query, body, person }) {
      const options = optionsOf(params.name);
      const added = await drops.entry(options.name)?.drop.put?.({ name: query.name, content: body, by: person.name });
      if (added === undefined) throw noUploads(options);
      log.info({ drop: params.name, file: added.path, by: person.name }, "a person put a file into a drop");
      poll(params.name);
      return added;
    },
  };
}

async function factsOf(
  { waiting: _, ...state }: DropState,
  config: GatewayConfig,
  { ledger, drops }: DropParts,
): Promise<DropFacts> {
  const options = config.drops.find(({ name }) => name === state.drop);
  const last = await ledger.lastArrivalAt(state.drop);
  return {
    ...state,
    address: options === undefined ? null : addressOf(options),
    lastFile: last === null ? null : { path: last.path, at: last.seenAt },
    hostKey: hostKeyOf(state),
    takesUploads: drops.entry(state.drop)?.drop.put !== undefined,
  };
}

function addressOf(options: DropOptions): string {
  if (options.kind === "local") return options.path;
  if (options.kind === "http") return options.listen;
  if (options.kind === "hub") return "the storage of the hub";
  const { kind, host, username, path } = options;
  const port = options.port === undefined ? "" : `:${options.port}`;
  // The folder after the login.
  const folder = path === "." ? "" : `${path.startsWith("/") ? "" : "/"}${path}`;
  return `${kind}://${username}@${host}${port}${folder}`;
}

function hostKeyOf({ kind, lastError, lastCompletePoll }: Omit<DropState, "waiting">): DropFacts["hostKey"] {
  if (kind !== "sftp") return "none";
  if (lastError?.code === HOST_KEY_REFUSED) return "refused";
  return lastCompletePoll === null ? "unknown" : "trusted";
}

function sftpOf(options: DropOptions): Extract<DropOptions, { kind: "sftp" }> {
  if (options.kind === "sftp") return options;
  throw unknownSubject({
    operation: "read host key",
    subject: options.name,
    message: `the drop ${options.name} is of the kind ${options.kind}, which has no host keys`,
    hint: "Only the servers of SFTP drops have host keys.",
  });
}

function shownKeys({ known, offered }: HostKeyState) {
  return { known: [...known], offered };
}

function noUploads(options: DropOptions): RejectedError {
  return new RejectedError("HG-OPS-012", {
    operation: "put file into drop",
    subject: options.name,
    message: `no file can be put into the drop ${options.name} here: ${whyNoUploads(options)}`,
    hint: "Put the file where its senders do, or into a local drop or an HTTP intake.",
  });
}

/** Its storage is checked with the hub. */
function ofHub(name: string): RejectedError {
  return new RejectedError("HG-OPS-012", {
    operation: "check drop",
    subject: name,
    message: `the drop ${name} is the storage of the hub, which is checked with the hub`,
    hint: "Run `headgate check -c hub.yaml`.",
  });
}
