/** Hubs on one PostgreSQL that share a bucket; one of them is lost in the middle of its work. */
import { join } from "node:path";
import { ListObjectsV2Command } from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { usePostgres } from "../hub/fixture.ts";
import { type HubPair, startPair } from "../platform/hub-pair.ts";
import { describeWith } from "./installed.ts";
import { type Swift, startSwift, WRITER } from "./swift.ts";

let swift: Swift;
let bucket: string;
let pair: HubPair;

describeWith("swift", "hubs that share object storage", () => {
  beforeAll(async () => {
    await usePostgres();
    swift = await startSwift();
  });
  afterAll(() => swift.close());
  beforeEach(async () => {
    bucket = await swift.bucket();
    const { endpoint } = swift;
    const files = { kind: "s3", endpoint, bucket, forcePathStyle: true, timeout: "5s", ...WRITER };
    pair = await startPair((directory, nth) => ({ ...files, local: join(directory, `receiving-${nth}`) }));
  });
  afterEach(() => pair.close());

  test("the files of a hub that is killed are finished by the other, once", async () => {
    const answered = await pair.sendUntilFirstIsKilled();
    const [, other] = pair.hubs;
    await pair.expectOnce(other, answered);
    const [[value, id] = [0, 0]] = answered;
    expect((await other.call("GET", "/storage/file", { query: { ids: id } })).body).toContain(`,${value},K-`);
    // Equal contents are kept once; what was not answered may be there too.
    const { Contents = [] } = await swift.client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: "bytes/" }));
    expect(Contents.length).toBeGreaterThanOrEqual(answered.size);
  });

  test("while the storage is away uploads are refused for now, and nothing that was answered is lost", async () => {
    const [one, other] = pair.hubs;
    const answered = new Map([[0, await pair.send(one, 0)]]);
    await swift.stop();
    const refused = await one.upload("date,value\n", { Filename: "pair_x.csv" });
    expect([refused.status, refused.body.code]).toEqual([503, "unavailable"]);
    await swift.restart();
    answered.set(1, await pair.send(other, 1));
    await pair.expectOnce(one, answered);
  });
});
