/** The codes of delivery; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const DELIVERY_ERRORS = {
  "HG-PUSH-001": {
    title: "the service cannot be reached",
    hint: "The batch is sent again later with the same bytes and operationId.",
  },
  "HG-PUSH-002": {
    title: "the token endpoint refuses the client credentials",
    hint:
      "Correct `credentials.clientId` and `credentials.clientSecret` of the service; the platform operator " +
      "issues them.",
  },
  "HG-PUSH-003": {
    title: "the token endpoint refuses the user credentials",
    hint: "Correct `credentials.username` and `credentials.password` of the service, or have the user unlocked.",
  },
  "HG-PUSH-004": {
    title: "the token endpoint refuses the scopes",
    hint:
      "Correct `scopes` of the service, or have the client allowed them; reading and pushing need datahub-api " +
      "and push-data.",
  },
  "HG-PUSH-005": {
    title: "the token belongs to another account",
    hint:
      "Correct `account` of the service, or use a user of that account; pushed data would go elsewhere and " +
      "reads would be empty.",
  },
  "HG-PUSH-006": {
    title: "the token endpoint does not answer as a token endpoint",
    hint: "Check the address in `token` of the service.",
  },
  "HG-PUSH-007": {
    title: "the service refuses the token",
    hint: "Check that the token's scopes cover the call and that `token`, `base` and `push` belong to one service.",
  },
  "HG-PUSH-008": {
    title: "the user lacks a right",
    hint: "A manager of the account can grant it; pushing needs the right Data Pusher (datapusher.standard).",
  },
  "HG-PUSH-009": {
    title: "the address does not answer as the service",
    hint: "Check `push` and `base` of the service, and proxies between them.",
  },
  "HG-PUSH-010": {
    title: "the service refuses a request",
    hint: "The message of the service says what it does not accept; the same request will be refused again.",
  },
  "HG-PUSH-011": {
    title: "the bytes of a batch differ from what was recorded",
    hint:
      "The segment in the spool was changed or damaged; nothing of it was sent. Replay the run from its kept " +
      "input.",
  },
  "HG-PUSH-012": {
    title: "the service refused a reading",
    hint: "Correct the reading in the file, or its target, and deliver the file again.",
  },
  "HG-PUSH-013": {
    title: "the segment of a run cannot be read or written at present",
    hint: "Check space, rights and health of the disk that holds the spool.",
    again: "It is retried.",
  },
  "HG-PUSH-014": {
    title: "the service knows an operationId with other bytes",
    hint:
      "Was an older copy of the ledger restored, or does another gateway use the same ids? Compare the stored " +
      "points with the file; `headgate replay RUN` pushes it under new ids.",
  },
  "HG-PUSH-015": {
    title: "a batch that may be stored already was refused whole",
    hint:
      "Compare the stored points with the file. `headgate replay RUN` pushes the file again under new ids: a " +
      "reading without a version that is stored already becomes a second version there. Where the service stores " +
      "a batch only once that comes twice under one Idempotency-Key, set `services[].idempotency`: such a batch " +
      "is then split.",
  },
  "HG-PUSH-016": {
    title: "the service has not applied an earlier operation with the same readings",
    hint: "`headgate trace` of that operation, at the gateway that sent it, shows it; at a hub GET /operations does.",
    again: "Once it is applied, what the service lacks of these readings is sent, and nothing else.",
  },
} as const satisfies Record<string, RegisterEntry>;
