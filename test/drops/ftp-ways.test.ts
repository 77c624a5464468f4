/** Ways to FTP servers: passive addresses, TLS, names. */

import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { fetchFile } from "#gateway/drops/drop.ts";
import type { FileEntry } from "#gateway/model.ts";
import { testCertificate, testKey } from "./certificate.ts";
import { entryAt, type Field, listed, never, openFtp } from "./field.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function opened(field: Promise<Field>): Promise<Field> {
  const open = await field;
  closing.push(() => open.close());
  return open;
}

async function works(field: Field): Promise<void> {
  await field.write("größe.csv", "content");
  const entry = await entryAt(field.drop, "größe.csv");
  expect(await listed(field.drop)).toEqual([entry]);
  expect(await fetchFile(field.drop, entry, join(field.outside, "copy"), never)).toMatchObject({ bytes: 7 });
}

describe("a passive address", () => {
  const wrong = { extendedPassive: false, passiveAddress: "127.9.9.9" };

  test("is not used when it is wrong, as behind an address translation", async () => {
    await works(await opened(openFtp("auto", wrong)()));
  });

  test("is used as announced when the drop is configured so", async () => {
    const field = await opened(openFtp("auto", wrong)({ passiveAddress: "announced", timeouts: { data: "500ms" } }));
    await expect(listed(field.drop)).rejects.toMatchObject({ code: "HG-DROP-001" });
    await works(await opened(openFtp("auto", { extendedPassive: false })({ passiveAddress: "announced" })));
  });

  test.for(["epsv", "pasv"] as const)("is requested only by %s when the drop is configured so", async (passive) => {
    await works(await opened(openFtp("auto")({ passive })));
    const field = await opened(openFtp("auto", { extendedPassive: passive === "pasv" })({ passive }));
    if (passive === "epsv") await expect(listed(field.drop)).rejects.toMatchObject({ code: "HG-DROP-001" });
    else await works(field);
  });
});

describe("a server that cuts off blanks before names", () => {
  test("refuses such a file with the name as the cause, and not the rights", async () => {
    const field = await opened(openFtp("auto", { cutsBlanks: true })());
    await field.write(" a.csv", "content");
    const [entry] = await listed(field.drop);
    const fetched = fetchFile(field.drop, entry as FileEntry, join(field.outside, "copy"), never);
    await expect(fetched).rejects.toMatchObject({ hint: expect.stringMatching(/^The path " a\.csv" has a blank/) });
  });

  test("has such a folder named, as one that the server does not find", async () => {
    const field = await opened(openFtp("auto", { cutsBlanks: true })());
    await field.write(" sub/a.csv", "content");
    await expect(listed(field.drop)).rejects.toMatchObject({
      code: "HG-DROP-002",
      message: expect.stringContaining("lists the folder"),
      hint: expect.stringMatching(/^The path ".* sub" has a blank/),
    });
  });
});

describe("TLS", () => {
  const keys = { key: testKey, cert: testCertificate };
  const trusting = { ca: testCertificate };

  test("is used from the first byte", async () => {
    await works(await opened(openFtp("auto", { tls: { ...keys, implicit: true } })({ tls: "implicit", ...trusting })));
  });

  test("presents a client certificate when the server requests one", async () => {
    const server = { tls: { ...keys, clientCa: testCertificate } };
    const clientCertificate = { certificate: testCertificate, key: testKey };
    await works(await opened(openFtp("auto", server)({ tls: "explicit", ...trusting, clientCertificate })));
    const without = await opened(openFtp("auto", server)({ tls: "explicit", ...trusting }));
    await expect(listed(without.drop)).rejects.toMatchObject({
      code: expect.stringMatching(/HG-DROP-0(01|11)/),
    });
  });
});

describe("names", () => {
  test("in Latin-1 are read and requested in Latin-1", async () => {
    await works(await opened(openFtp("auto", { encoding: "latin1" })({ names: "latin-1" })));
    await works(await opened(openFtp("list", { encoding: "latin1" })({ names: "latin-1" })));
  });
});
