/** `headgate notify test`: checks that notifications reach their receivers. */

import { isoInstant, systemClock } from "#core/clock.ts";
import { ConfigError, wordsOf } from "#core/errors.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { gatewayName } from "#gateway/notifications.ts";
import { testNotification } from "#gateway/operations/notification-text.ts";
import { createReceiver } from "#gateway/operations/receivers.ts";
import { addCommand, type CommandFrame, configOption } from "./command.ts";
import { print, printJson, styled } from "./output.ts";

interface NotifyOptions {
  readonly config: string;
  readonly json?: boolean;
}

export function addNotify({ command, action }: CommandFrame): void {
  const notify = command("notify", ["headgate notify test -c gateway.yaml"]);
  addCommand(notify, "test", "Sends a test to every receiver, and prints the results.", [
    "headgate notify test -c gateway.yaml",
  ])
    .addOption(configOption())
    .option("--json", "as JSON")
    .action(action((options: NotifyOptions) => sendTests(options)));
}

async function sendTests(options: NotifyOptions): Promise<number> {
  const config = loadGatewayConfig(options.config);
  const { receivers } = config.notifications;
  if (receivers.length === 0) throw new ConfigError("HG-OPS-003", { operation: "send test", subject: options.config });
  const notification = testNotification(gatewayName(config, options.config), isoInstant(systemClock.now()));
  const results = await Promise.all(
    receivers.map(async (one) => {
      const receiver = createReceiver(one, systemClock);
      const facts = { receiver: receiver.name, kind: one.kind, place: receiver.place };
      try {
        const { words, isPartial } = await receiver.send(notification);
        return { ...facts, accepted: !isPartial, words };
      } catch (thrown) {
        return { ...facts, accepted: false, words: wordsOf(thrown) };
      }
    }),
  );
  if (options.json === true) printJson(results);
  else
    for (const { receiver, place, accepted, words } of results)
      print(`${accepted ? styled("green", "sent") : styled("red", "failed")}  ${receiver} (${place}): ${words}`);
  return results.every(({ accepted }) => accepted) ? 0 : 1;
}
