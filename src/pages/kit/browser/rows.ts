/** A list in JSON that is read while it comes, in pieces so small that none occupies the browser for long. */

const PIECE_CHARACTERS = 131_072;
/** After so long the browser has its turn, to draw and to react. */
const TURN_MS = 25;
/** Where one object ends and the next one begins. A text may end so, too; then the piece before is no JSON. */
const CUT = '},{"';

/** Gives the rows of the answer in their order; an answer that is cut short is a `SyntaxError`. */
export async function readRows<Row>(answer: Response, take: (rows: readonly Row[]) => void): Promise<void> {
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  let began = performance.now();
  let held = "";
  for (let isLast = false; !isLast; ) {
    const part = await reader?.read();
    isLast = part?.done !== false;
    held += part?.value === undefined ? decoder.decode() : decoder.decode(part.value, { stream: true });
    let begin = 0;
    for (const piece of piecesOf<Row>(held)) {
      take(piece.rows);
      begin = piece.end;
      if (performance.now() - began < TURN_MS) continue;
      await turn();
      began = performance.now();
    }
    if (begin > 0) held = `[${held.slice(begin)}`;
  }
  take(JSON.parse(held) as readonly Row[]);
}

interface Piece<Row> {
  readonly rows: readonly Row[];
  /** Where the next row begins. */
  readonly end: number;
}

/** `text` begins with a bracket; what is left at its end is no whole piece. */
function* piecesOf<Row>(text: string): Generator<Piece<Row>> {
  let begin = 1;
  for (let cut = text.indexOf(CUT, PIECE_CHARACTERS); cut >= 0; ) {
    const rows = parsed<Row>(`[${text.slice(begin, cut + 1)}]`);
    if (rows === null) {
      cut = text.indexOf(CUT, cut + 1);
      continue;
    }
    begin = cut + 2;
    yield { rows, end: begin };
    cut = text.indexOf(CUT, begin + PIECE_CHARACTERS);
  }
}

function parsed<Row>(text: string): readonly Row[] | null {
  try {
    return JSON.parse(text) as readonly Row[];
  } catch {
    return null;
  }
}

/** A task of its own, without the least delay of timers. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
