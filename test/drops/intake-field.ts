/** An HTTP intake for the conformance suite. What a test writes is uploaded, and the intake names where it is then. */
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Agent, FormData, fetch } from "undici";
import { expect } from "vitest";
import { silentLog } from "#core/log.ts";
import { finishFile } from "#gateway/drops/drop.ts";
import { IntakeDrop } from "#gateway/drops/intake/intake.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import type { SharedIntake } from "#gateway/model.ts";
import { entryAt, never, type OpenField } from "./field.ts";

const USER = { username: "meter", password: "open sesame" };

/** `shared`: of a ledger that several gateways use; null for the disk of one gateway. */
export function openIntake(shared: () => SharedIntake | null): OpenField {
  return async (settings = {}) => {
    const outside = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
    // A ledger outlives the test, and keeps the bodies of each drop apart.
    const name = `field-${randomBytes(6).toString("hex")}`;
    const written = { kind: "http", name, listen: "127.0.0.1:0", users: [USER], ...settings };
    const options = dropOptions.parse(written);
    if (options.kind !== "http") throw new Error("the drop is no intake");
    const parts = { spool: join(outside, "spool"), shared: shared(), defaultService: "hub" };
    const facts = { ...parts, accountOf: () => undefined, refusalOf: () => null };
    const drop = new IntakeDrop(options, facts, silentLog);
    const url = await drop.open();
    // As senders, of which each has a connection.
    const agent = new Agent({ connections: 16 });
    const root = join(outside, "spool", "intake", name, "bodies");
    await mkdir(root, { recursive: true });
    return {
      drop,
      options,
      root,
      outside,
      faults: null,
      connections: () => 0,
      // A ledger lists 500 at once. Each file is a request, and synced.
      manyFiles: parts.shared === null ? 60 : 520,
      async write(path, content) {
        const form = new FormData();
        form.append("file", new Blob([typeof content === "string" ? content : Buffer.from(content)]));
        const authorization = `Basic ${Buffer.from(`${USER.username}:${USER.password}`).toString("base64")}`;
        const query = new URLSearchParams({ Filename: basename(path) });
        const request = { method: "POST", headers: { authorization }, body: form, dispatcher: agent };
        const answer = await fetch(`${url}/storage?${query}`, request);
        expect(answer.status).toBe(200);
        return `storage/${await answer.json()}/${basename(path)}`;
      },
      async remove(path) {
        const gone = await finishFile(drop, await entryAt(drop, path), { action: "delete" }, never);
        expect(gone).toBe("done");
      },
      async close() {
        await agent.close();
        await drop.close();
        await rm(outside, { recursive: true, force: true });
      },
    };
  };
}
