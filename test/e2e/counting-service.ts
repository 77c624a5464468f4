/** A service that takes every push and counts how often each reading came, and with which value it came last. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json, text } from "node:stream/consumers";

interface Element {
  readonly sourceSerialNumber: string;
  readonly mappingConfig: string;
  readonly data: readonly { readonly date: string; readonly value: number }[];
}

/** Readings of a regular grid: series by their number, dates by their step. */
export interface Grid {
  readonly series: number;
  readonly steps: number;
  readonly startMs: number;
  readonly stepMs: number;
}

export interface Counted {
  readonly readings: number;
  readonly distinct: number;
  /** Readings that are not of the grid. */
  readonly foreign: number;
  /** Of the values that came last, in thousandths. */
  readonly sum: bigint;
}

const TOKEN = JSON.stringify({ access_token: "counted", expires_in: 86_400, scope: "datahub-api push-data" });

export class CountingService {
  readonly #server: Server;
  #grid: Grid = { series: 0, steps: 0, startMs: 0, stepMs: 1 };
  #times = new Uint8Array();
  #values = new Float64Array();
  #foreign = 0;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<CountingService> {
    const service = new CountingService();
    service.#server.listen(0, "127.0.0.1");
    await once(service.#server, "listening");
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Forgets what came. Names of series are `M-0`, `M-1`, …. */
  expectGrid(grid: Grid): void {
    this.#grid = grid;
    this.#times = new Uint8Array(grid.series * grid.steps);
    this.#values = new Float64Array(grid.series * grid.steps);
    this.#foreign = 0;
  }

  get counted(): Counted {
    let readings = 0;
    let distinct = 0;
    let sum = 0n;
    for (const [at, times] of this.#times.entries()) {
      readings += times;
      if (times === 0) continue;
      distinct += 1;
      sum += BigInt(Math.round((this.#values[at] ?? Number.NaN) * 1000));
    }
    return { readings, distinct, foreign: this.#foreign, sum };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isToken = request.url?.endsWith("/token") === true;
    if (isToken) await text(request);
    else for (const element of (await json(request)) as readonly Element[]) this.#count(element);
    response.writeHead(200, { "content-type": "application/json" }).end(isToken ? TOKEN : "{}");
  }

  #count({ sourceSerialNumber, mappingConfig, data }: Element): void {
    const { series, steps, startMs, stepMs } = this.#grid;
    const number = Number(/^M-(\d+)$/.exec(sourceSerialNumber)?.[1]);
    for (const { date, value } of data) {
      const step = (Date.parse(date) - startMs) / stepMs;
      if (!(number < series && step >= 0 && step < steps && Number.isInteger(step) && mappingConfig === "kWh")) {
        this.#foreign += 1;
        continue;
      }
      const at = number * steps + step;
      this.#times[at] = (this.#times[at] ?? 0) + 1;
      this.#values[at] = value;
    }
  }
}
