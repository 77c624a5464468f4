/** What a `webhookUrl` may reach: the caller chooses it, and the hub stands inside a network. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { createReceivers, isPublic, type LookUpAll, publicLookup, reachOf } from "#hub/deliveries/receivers.ts";

describe("an address", () => {
  it.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.9.9.9",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:10.0.0.1",
    "::ffff:7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:a00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "",
    "no address",
  ])("%s is not public", (address) => expect(isPublic(address)).toBe(false));

  it.each(["8.8.8.8", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"])(
    "%s is public",
    (address) => expect(isPublic(address)).toBe(true),
  );
});

describe("a webhookUrl", () => {
  const hosts = ["gateway.corp", "10.0.0.7:8080", "[fd00::7]", "Plant.Example.org:8443"];
  it.each([
    ["https://gateway.example.org/x", "public"],
    ["https://gateway.example.org:443/x", "public"],
    ["https://gateway.example.org:444/x", "refused"],
    ["http://gateway.example.org/x", "refused"],
    ["http://gateway.example.org:443/x", "refused"],
    ["http://gateway.corp/x", "listed"],
    ["https://GATEWAY.corp.:9/x", "listed"],
    ["http://10.0.0.7:8080/", "listed"],
    ["http://10.0.0.7:8081/", "refused"],
    ["https://10.0.0.7/", "refused"],
    ["http://[fd00::7]:1/", "listed"],
    ["https://[fd00::8]/", "refused"],
    ["https://plant.example.org:8443/", "listed"],
    ["https://plant.example.org/", "public"],
    ["https://gateway.corp.example.org/", "public"],
    ["https://0x7f.1/", "refused"],
    ["https://017700000001/", "refused"],
    ["https://[::ffff:a00:1]/", "refused"],
    ["https://localhost/", "refused"],
    ["https://a.localhost/", "refused"],
    ["https://printer.local/", "refused"],
    ["https://metadata.google.internal/", "refused"],
  ])("%s is %s", (url, reach) => expect(reachOf(new URL(url), hosts)).toBe(reach));
});

describe("a name", () => {
  const resolvesTo =
    (...addresses: string[]): LookUpAll =>
    (_name, _options, done) =>
      done(
        null,
        addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      );
  const lookedUp = (lookUpAll: LookUpAll) =>
    new Promise((resolve, reject) => {
      publicLookup(lookUpAll)("name.example.org", { all: true }, (fault, found) =>
        fault === null ? resolve(found) : reject(fault),
      );
    });

  it("is connected at the addresses that were checked", async () => {
    expect(await lookedUp(resolvesTo("8.8.8.8", "2606:4700::1111"))).toEqual([
      { address: "8.8.8.8", family: 4 },
      { address: "2606:4700::1111", family: 6 },
    ]);
  });

  it.each([["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["2606:4700::1111", "::ffff:169.254.169.254"]])(
    "is refused when it resolves to %s %s",
    async (...addresses) => {
      await expect(lookedUp(resolvesTo(...addresses))).rejects.toThrow("no public address");
    },
  );

  it("that resolves to an address of the hub's own network is not connected to", async () => {
    let connections = 0;
    const server = createServer((_request, response) => response.end()).on("connection", () => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const call = { origin: `http://name.example.org:${port}`, path: "/", method: "POST" } as const;
    const receivers = createReceivers(resolvesTo("127.0.0.1"));
    try {
      await expect(receivers.agentFor("public").request(call)).rejects.toThrow("no public address");
      expect(connections).toBe(0);
    } finally {
      await receivers.close();
      server.close();
    }
  });
});
