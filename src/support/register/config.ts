/** The codes of configuration; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const CONFIG_ERRORS = {
  "HG-CONF-001": {
    title: "the configuration file cannot be read",
    hint:
      "Name the file with -c or in HEADGATE_CONFIG; otherwise it is gateway.yaml (hub.yaml for the hub) in the " +
      "current folder. Check that this user may read it; `headgate init` writes a new one.",
  },
  "HG-CONF-002": {
    title: "the configuration is not valid",
    hint: "Correct the lines named; `headgate check -c FILE` checks again.",
  },
  "HG-CONF-003": {
    title: "a secret cannot be resolved",
    hint: "Set the environment variable or create the file that ${env:…} or ${file:…} names.",
  },
  "HG-CONF-004": {
    title: "an address cannot be listened on",
    hint: "Another program may use this port: choose another in the configuration, or 0 for any free one.",
  },
  "HG-CONF-005": {
    title: "other users can read files of the state",
    hint: "Run: chmod -R go-rwx PATH, for the path that is named.",
  },
} as const satisfies Record<string, RegisterEntry>;
