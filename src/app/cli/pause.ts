/** `headgate pause` and `headgate resume`: stop polling a drop, or stop claiming by a trigger. */

import { ConfigError } from "#core/errors.ts";
import { nearestName } from "#core/nearest-name.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import { EFFECTS } from "#gateway/console/subjects.ts";
import type { Pause } from "#gateway/model.ts";
import type { CommandFrame } from "./command.ts";
import { authorOf, type CommandOptions, daemonWords, sendCommand } from "./command-client.ts";
import { knownTriggers } from "./kept-triggers.ts";
import { loadOperatedConfig, operatedConfigOption } from "./operated-config.ts";
import { print, printJson } from "./output.ts";

interface PauseOptions extends CommandOptions {
  readonly drop?: boolean;
  readonly trigger?: boolean;
}

const EXAMPLES = {
  pause: 'headgate pause field -c gateway.yaml --reason "the server moves"',
  resume: "headgate resume field -c gateway.yaml",
} as const;

export const addPause = (frame: CommandFrame) => addChange(frame, "pause");
export const addResume = (frame: CommandFrame) => addChange(frame, "resume");

function addChange({ command, action }: CommandFrame, order: "pause" | "resume"): void {
  command(order, [EXAMPLES[order]])
    .addOption(operatedConfigOption())
    .option("--drop", "the drop of this name, where a trigger has the same one")
    .option("--trigger", "the trigger of this name, where a drop has the same one")
    .option("--reason <words>", "reason, for the history")
    .option("--by <name>", "user (default: the one who runs the command)")
    .option("--json", "as JSON")
    .action(action((name: string, options: PauseOptions) => change(order, name, options)));
}

async function change(order: "pause" | "resume", name: string, options: PauseOptions): Promise<number> {
  const config = await loadOperatedConfig(options.config);
  const kind = await kindOf(name, options, config);
  const { answer, daemon } = await sendCommand(config, { order, kind, name, ...authorOf(options) });
  if (options.json === true) {
    printJson(answer);
    return 0;
  }
  const isChanged = !("wasPaused" in answer) || answer.wasPaused;
  if (order === "pause") print(`the ${kind} ${name} is paused: ${EFFECTS[kind]}`);
  else print(`the ${kind} ${name} ${isChanged ? "is resumed" : "was not paused"}`);
  if (daemon === null && isChanged) print(daemonWords(daemon));
  return 0;
}

/** Throws `ConfigError` when the name is unknown, or ambiguous. */
async function kindOf(name: string, options: PauseOptions, config: GatewayConfig): Promise<Pause["kind"]> {
  const { triggers } = await knownTriggers(config);
  const names = {
    drop: config.drops.map((one) => one.name),
    trigger: triggers.map((one) => one.name),
  };
  const wanted = (["drop", "trigger"] as const).filter(
    (kind) => options.drop === options.trigger || options[kind] === true,
  );
  const found = wanted.filter((kind) => names[kind].includes(name));
  const [kind] = found;
  if (kind !== undefined && found.length === 1) return kind;
  const known = wanted.flatMap((one) => names[one]);
  const nearest = nearestName(name, known);
  throw new ConfigError("HG-CLI-001", {
    operation: "read argument",
    subject: name,
    message:
      kind === undefined
        ? `there is no ${wanted.join(" or ")} ${name}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`
        : `a drop and a trigger have the name ${name}`,
    hint: kind === undefined ? `There are: ${known.join(", ")}.` : "Choose with --drop or --trigger.",
  });
}
