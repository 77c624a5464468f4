/** The session of a node: its lease, its renewal, and the end of sessions of nodes whose lease lapsed. */
import { hostname } from "node:os";
import type { Pool } from "pg";
import type { Clock } from "#core/clock.ts";
import { ConfigError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { isUniqueViolation } from "#core/sql/postgres/faults.ts";
import type { FleetWatch } from "../fleet.ts";

export interface SessionMeans {
  readonly pool: Pool;
  readonly node: string;
  /** Milliseconds. */
  readonly lease: number;
  readonly clock: Clock;
  readonly log: Logger | undefined;
  readonly watch: FleetWatch;
}

/** Number of renewals during one lease. */
export const RENEWALS = 3;
const QUESTION_EVERY_MS = 200;

/** Waits for the transactions that rely on the session. */
const END = `UPDATE sessions SET ended_at = clock_timestamp()
  WHERE id = (SELECT id FROM sessions WHERE id = $1 AND ended_at IS NULL FOR UPDATE)`;

export class NodeSession {
  readonly node: string;
  readonly #means: SessionMeans;
  readonly #stopping = new AbortController();
  #id: number;
  #loop: Promise<void> = Promise.resolve();
  #again: Promise<void> | null = null;

  private constructor(means: SessionMeans, id: number) {
    this.#means = means;
    this.#id = id;
    this.node = means.node;
  }

  /** `ConfigError` while another process of this name lives. */
  static async open(means: SessionMeans): Promise<NodeSession> {
    await endOwn(means);
    await prune(means);
    const id = await begin(means).catch((thrown: unknown) => {
      throw isUniqueViolation(thrown) ? notUnique(means.node, "it has just started") : thrown;
    });
    const session = new NodeSession(means, id);
    session.#loop = session.#renewAlways();
    return session;
  }

  /** The fence. */
  get id(): number {
    return this.#id;
  }

  /**
   * The server reports that this session has ended: opens a new one in its place, unless one was opened
   * already.
   */
  async lost(id: number): Promise<void> {
    if (id !== this.#id) return;
    this.#again ??= this.#beginAgain().finally(() => {
      this.#again = null;
    });
    await this.#again;
  }

  /** Ends the session, so that other nodes may take its drops and runs at once. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await this.#again;
    await this.#means.pool
      .query(END, [this.#id])
      .catch((thrown: unknown) => this.#logFault(thrown, "the lease could not be released; it lapses by itself"));
  }

  async #renewAlways(): Promise<void> {
    const { clock, lease } = this.#means;
    while (await clock.sleep(lease / RENEWALS, this.#stopping.signal)) {
      try {
        await this.#renew();
        await this.#endLapsed();
      } catch (thrown) {
        this.#logFault(thrown, "the lease could not be renewed");
      }
    }
  }

  async #renew(): Promise<void> {
    const id = this.#id;
    const renewed = await this.#means.pool.query(
      `UPDATE sessions SET renewed_at = clock_timestamp(), until = clock_timestamp() + $2 * interval '1 millisecond'
        WHERE id = $1 AND ended_at IS NULL`,
      [id, this.#means.lease],
    );
    if (renewed.rowCount === 0) await this.lost(id);
  }

  /**
   * Does not wait: a session whose process sleeps inside a transaction ends after the server has ended the
   * transaction.
   */
  async #endLapsed(): Promise<void> {
    const { rows } = await this.#means.pool.query<{ node: string }>(
      `UPDATE sessions SET ended_at = clock_timestamp() WHERE id IN (SELECT id FROM sessions
        WHERE ended_at IS NULL AND until < clock_timestamp() AND id <> $1 FOR UPDATE SKIP LOCKED) RETURNING node`,
      [this.#id],
    );
    for (const { node } of rows)
      this.#means.log?.warn({ node }, "a node did not renew its lease and has lost its drops and runs");
    const { rows: left } = await this.#means.pool.query<{ node: string }>(
      `SELECT DISTINCT node FROM sessions
WHERE ended_at > clock_timestamp() - $1 * interval '1 millisecond' AND node <> $2`,
      [(this.#means.lease * 2) / RENEWALS, this.node],
    );
    for (const { node } of left) this.#means.watch.onLeft(node);
  }

  async #beginAgain(): Promise<void> {
    const { log, watch } = this.#means;
    log?.warn(
      { node: this.node },
      "this node did not renew its lease in time, and has lost its drops and runs to other nodes",
    );
    while (!this.#stopping.signal.aborted) {
      try {
        this.#id = await begin(this.#means);
        watch.onLost();
        return;
      } catch (thrown) {
        this.#logFault(thrown, "no new lease yet");
        await this.#means.clock.sleep(QUESTION_EVERY_MS, this.#stopping.signal);
      }
    }
  }

  #logFault(thrown: unknown, words: string): void {
    this.#means.log?.warn({ node: this.node, reason: wordsOf(thrown) }, words);
  }
}

/**
 * Deletes sessions that ended so long ago that nodes are no longer shown; a drop that no node took is free.
 */
async function prune({ pool }: SessionMeans): Promise<void> {
  const old = "SELECT id FROM sessions WHERE ended_at < clock_timestamp() - interval '2 days'";
  await pool.query(`DELETE FROM drop_holders WHERE session IN (${old})`);
  await pool.query(`DELETE FROM sessions WHERE id IN (${old}) AND id NOT IN (SELECT session FROM drop_holders)`);
}

async function begin({ pool, node, lease }: SessionMeans): Promise<number> {
  const { rows } = await pool.query<{ id: number }>(
    `INSERT INTO sessions (node, host, pid, until)
      VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond') RETURNING id`,
    [node, hostname(), process.pid, lease],
  );
  return rows[0]?.id ?? 0;
}

function notUnique(node: string, which: string): ConfigError {
  return new ConfigError("HG-LEDG-011", {
    operation: "join fleet",
    subject: node,
    message: `another process is the node ${node} (${which})`,
  });
}

interface Earlier {
  readonly id: number;
  readonly host: string;
  readonly pid: number;
  readonly renewed: string;
  readonly lapsed: boolean;
}

/**
 * Ends the session of an earlier process of this name: at once when that process is gone, otherwise when its
 * lease has lapsed.
 */
async function endOwn(means: SessionMeans): Promise<void> {
  const { pool, node, clock } = means;
  let first: Earlier | undefined;
  for (;;) {
    const { rows } = await pool.query<Earlier>(
      `SELECT id, host, pid, renewed_at::text AS renewed, until < clock_timestamp() AS lapsed
        FROM sessions WHERE node = $1 AND ended_at IS NULL`,
      [node],
    );
    const earlier = rows[0];
    if (earlier === undefined) return;
    if (first !== undefined && (first.id !== earlier.id || first.renewed !== earlier.renewed))
      throw notUnique(node, `process ${earlier.pid} on ${earlier.host}`);
    first ??= earlier;
    if (earlier.lapsed || isGone(earlier)) {
      await pool.query(END, [earlier.id]);
      return;
    }
    await clock.sleep(QUESTION_EVERY_MS);
  }
}

function isGone({ host, pid }: Earlier): boolean {
  if (host !== hostname()) return false;
  if (pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return false;
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH";
  }
}
