/** Fails a test file that leaves servers, sockets, timers, workers or child processes behind. */
import { afterAll, expect } from "vitest";

/** What the test runner itself keeps open. */
const OF_THE_RUNNER = new Set(["PipeWrap", "CloseReq", "FSReqPromise", "FSReqCallback", "ReadStream", "WriteStream"]);
/** Only a file that leaves something behind waits so long; a busy machine takes seconds to close a socket. */
const GRACE_MS = 15_000;

const before = countByKind();

afterAll(async () => {
  const deadline = performance.now() + GRACE_MS;
  while (performance.now() < deadline && leaks().length > 0) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const left = leaks();
  expect([...left, ...(left.length > 0 ? connections() : [])], "left open by the tests of this file").toEqual([]);
});

/** From where to where each goes, and how many bytes wait to be sent: the kind alone does not lead to who left it. */
function connections(): string[] {
  // Nobody is asked for the names of hosts.
  Object.assign(process.report, { excludeNetwork: true });
  const report = process.report.getReport() as { readonly libuv?: readonly UvHandle[] };
  return (report.libuv ?? []).flatMap(({ type, localEndpoint: here, remoteEndpoint: there, ...handle }) =>
    type === "tcp"
      ? [`${here?.host}:${here?.port} → ${there?.host}:${there?.port}, ${handle.writeQueueSize ?? 0} to be sent`]
      : [],
  );
}

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

interface UvHandle {
  readonly type: string;
  readonly localEndpoint?: Endpoint | null;
  readonly remoteEndpoint?: Endpoint | null;
  readonly writeQueueSize?: number;
}

function leaks(): string[] {
  return [...countByKind()].flatMap(([kind, count]) => {
    const more = count - (before.get(kind) ?? 0);
    return more > 0 && !OF_THE_RUNNER.has(kind) ? [`${more} × ${kind}`] : [];
  });
}

function countByKind(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (kind !== "Timeout" && kind !== "Immediate") counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}
