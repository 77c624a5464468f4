import { ConfigError } from "#core/errors.ts";
import type { HubOptions } from "../options.ts";

/** Throws `ConfigError` for the first account of a grant that does not exist. */
export function refuseUnknownGrants({ signIn }: Pick<HubOptions, "signIn">, accountIds: readonly number[]): void {
  for (const { name, grants } of signIn.oidc)
    for (const accountId of grants.flatMap(({ accounts }) => accounts)) {
      if (accountIds.includes(accountId)) continue;
      const message = `signIn.oidc: ${name} grants the account ${accountId}, which does not exist`;
      throw new ConfigError("HG-HUB-004", { operation: "start hub", subject: "configuration", message });
    }
}
