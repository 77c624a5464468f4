import { GRANT, startTestHub, type TestHub } from "./fixture.ts";

/** A hub with a client that is `strict`; `strict`: the authorization of a token of it. */
export async function startStrictHub(): Promise<{ readonly hub: TestHub; readonly strict: string }> {
  const clients = [
    { id: "gateway", secret: "gateway-secret" },
    { id: "strict", secret: "strict-secret", strict: true },
  ];
  const hub = await startTestHub({ clients });
  const asStrict = { ...GRANT, client_id: "strict", client_secret: "strict-secret", scope: "datahub-api push-data" };
  const answer = await hub.form({ ...asStrict, username: "manager", password: "manager-password" });
  return { hub, strict: `Bearer ${((await answer.json()) as { access_token: string }).access_token}` };
}
