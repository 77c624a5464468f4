/** The codes of operations; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const OPERATIONS_ERRORS = {
  "HG-OPS-001": {
    title: "a notification was not accepted",
    hint: "It is retried. Check the receiver in `notifications`; `headgate notify test` tries them all.",
  },
  "HG-OPS-003": {
    title: "no receiver of notifications is configured",
    hint:
      "Name one in `notifications.receivers`, a webhook or an e-mail; docs/operations.md#notifications has " +
      "examples.",
  },
  "HG-OPS-002": {
    title: "the gateway does not accept the command",
    hint:
      "Does it run with another configuration, or is it just starting or stopping? Try again, or stop it: " +
      "without a gateway the command writes to its ledger.",
  },
  "HG-OPS-004": {
    title: "nothing of this name is known",
    hint: "It may have been forgotten, or its name is written differently.",
  },
  "HG-OPS-005": {
    title: "the upload is too large",
    hint: "Send a smaller file, or put it into the drop itself.",
  },
  "HG-OPS-006": {
    title: "the request is not valid",
    hint: "`GET /operations/openapi.json` describes what each address takes.",
  },
  "HG-OPS-007": {
    title: "people sign in to this console by name and password",
    hint: "Open the console and sign in as one of `operations.console.users`.",
  },
  "HG-OPS-008": {
    title: "there is no console to sign in to",
    hint: "Start the gateway, and run the command as its user.",
  },
  "HG-OPS-009": {
    title: "too many pages follow the changes",
    hint: "Close pages of the console that are not needed.",
  },
  "HG-OPS-010": {
    title: "a newer request took its place",
    hint: "Nothing was changed. The result of the newer request counts.",
  },
  "HG-OPS-011": {
    title: "the case cannot be added",
    hint: "Nothing was changed. A case needs a mapper with a folder of its own, a new name and a short file.",
  },
  "HG-OPS-012": {
    title: "this cannot be done at the drop",
    hint: "Nothing was changed. The message says why, and what the drop permits.",
  },
  "HG-OPS-013": {
    title: "the text takes too long to check",
    hint: "Nothing was changed. Check it with `headgate check --config FILE`, or check a shorter text.",
  },
  "HG-OPS-014": {
    title: "this is for operators",
    hint: "Sign in as an operator, or leave those options out.",
  },
} as const satisfies Record<string, RegisterEntry>;
