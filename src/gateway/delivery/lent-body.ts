/** A request's body in a buffer that is used again for the next one. */

/**
 * A socket may hold the bytes of a request until its answer comes and longer, where a service answers before it has
 * read them. So the buffer is given back only after each call that began has reported that its socket took all of it:
 * an HTTP client that writes an iterable asks for the next piece once the socket has drained or was closed. That holds
 * for pieces that are not smaller than the high-water mark of a socket (64 KiB).
 */
export class LentBody {
  readonly #bytes: Buffer;
  readonly #giveBack: () => void;
  /** Calls whose socket may hold the bytes. */
  #held = 0;
  #isReleased = false;

  constructor(bytes: Buffer, giveBack: () => void) {
    this.#bytes = bytes;
    this.#giveBack = giveBack;
  }

  /** The body of one call. */
  async *open(): AsyncGenerator<Buffer> {
    if (this.#isReleased) throw new Error("the buffer of this body holds another one");
    this.#held += 1;
    yield this.#bytes;
    // Not when the iterable is ended early: then a socket broke off, and the buffer is left to the garbage collector.
    this.#held -= 1;
  }

  /** Called when no further call begins with this body. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    if (this.#held === 0) this.#giveBack();
  }
}
