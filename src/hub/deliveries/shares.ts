/**
 * Running deliveries. Each account and each of its hosts has a share of them, so that unreachable receivers delay only
 * their own deliveries.
 */

export interface Delivered {
  readonly accountId: number;
  /** With its port. */
  readonly host: string;
}

export interface Shares<Item extends Delivered> {
  /** How many more may begin. */
  readonly left: number;
  /** Running deliveries, and the hosts and accounts that have used their share. */
  busy(): {
    readonly items: readonly Item[];
    readonly hosts: readonly Delivered[];
    readonly accounts: readonly number[];
  };
  begin(item: Item, deliver: () => Promise<void>): void;
  ended(): Promise<void>;
}

export function createShares<Item extends Delivered>(concurrency: number, onEnd: () => void): Shares<Item> {
  const perHost = Math.max(1, Math.floor(concurrency / 4));
  const perAccount = Math.max(1, Math.floor((concurrency * 3) / 4));
  const running = new Map<Item, Promise<void>>();
  const count = (wanted: (item: Item) => boolean) => [...running.keys()].filter(wanted).length;
  const ofHost = ({ accountId, host }: Item) => count((other) => other.accountId === accountId && other.host === host);
  const ofAccount = ({ accountId }: Item) => count((other) => other.accountId === accountId);
  return {
    get left(): number {
      return concurrency - running.size;
    },
    busy() {
      const items = [...running.keys()];
      return {
        items,
        hosts: items.filter((item) => ofHost(item) >= perHost),
        accounts: items.filter((item) => ofAccount(item) >= perAccount).map(({ accountId }) => accountId),
      };
    },
    begin(item, deliver) {
      const delivery = deliver().finally(() => {
        running.delete(item);
        onEnd();
      });
      running.set(item, delivery);
    },
    ended: async () => void (await Promise.all(running.values())),
  };
}
