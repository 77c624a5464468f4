import { afterAll, beforeAll, describe } from "vitest";
import { systemClock } from "#core/clock.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { ledgerOptions } from "#gateway/ledger/options.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { conforms, conformsAsReceiver } from "./conformance.ts";
import { openFtp, openLocal, openServed, openSftp } from "./field.ts";
import { openIntake } from "./intake-field.ts";

conforms("a local drop", openLocal, { hasLinks: true });
conforms("an SFTP drop", openSftp);
conforms("an FTP drop with MLSD", openFtp("auto"));
conforms("an FTP drop with LIST", openFtp("list"));
conforms("an SFTP drop at the hub's server over a folder", openServed("sftp"));
conforms("an FTP drop at the hub's server over a folder", openServed("ftp"));
conformsAsReceiver(
  "an HTTP intake on the disk of its gateway",
  openIntake(() => null),
);

describe("with a ledger that gateways share,", () => {
  let database: TestDatabase;
  let ledger: Ledger;
  beforeAll(async () => {
    database = await openTestDatabase();
    const options = ledgerOptions.parse({ kind: "postgres", url: database.url, node: "north" });
    ledger = await openLedger(options, { clock: systemClock });
  });
  afterAll(async () => {
    await ledger.close();
    await database.drop();
  });
  conformsAsReceiver(
    "an HTTP intake",
    openIntake(() => ledger.shared?.intake ?? null),
  );
});
