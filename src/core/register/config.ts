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
  "HG-CONF-006": {
    title: "this is the configuration of a hub, and that of a gateway is needed",
    hint:
      "Name that of the gateway with -c. A hub is run by `headgate hub -c FILE` and asked by `headgate health hub -c " +
      "FILE`; `check`, `trace`, `runs` and the other commands for files take its configuration, too. The hub has no " +
      "notifications of its own (watch its `metrics.listen`), and its structure comes by `POST` and master data.",
  },
  "HG-CONF-007": {
    title: "this is the configuration of a gateway, and that of a hub is needed",
    hint:
      "Name that of the hub with -c. A gateway is run by `headgate gateway -c FILE` and asked by `headgate health " +
      "gateway -c FILE`.",
  },
} as const satisfies Record<string, RegisterEntry>;
