/** Search, and the tree of sites, sources and variables. Both ask for a page at a time. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type Content, type Element, html } from "../kit/html.ts";
import { ask, type Found, type Parameters, type Site, type Source, type Variable } from "./hub.ts";
import { TEXTS } from "./texts.ts";

const PAGE = 100;
const FOUND_MAX = 50;
/** A person who types is not asked about in the middle of a word. */
const TYPING_MS = 150;

interface TreeProps {
  readonly chosen: readonly number[];
  /** Sets what the plot shows, or adds to it. */
  onChoose(id: number, isAdded: boolean): void;
  onFault(thrown: unknown): void;
}

export function Tree(props: TreeProps): Element {
  const [text, setText] = useState("");
  const found = useSearch(text, props.onFault);
  const write = (event: InputEvent) => setText((event.target as HTMLInputElement).value);
  return html`<nav class="tree" aria-label=${TEXTS.structure}>
    <form role="search" onSubmit=${(event: Event) => event.preventDefault()}>
      <label for="search">${TEXTS.search}</label>
      <input id="search" type="search" value=${text} autocomplete="off" spellcheck=${false} maxlength="200"
        aria-describedby="search-hint" onInput=${write} />
      <p class="hint" id="search-hint">${TEXTS.searchHint}</p>
    </form>
    <p class="muted" role="status">${found === null ? "" : TEXTS.results(found.length, found.length >= FOUND_MAX)}</p>
    ${found === null ? html`<${Sites} ...${props} />` : html`<${Results} ...${props} found=${found} />`}
  </nav>`;
}

/** Null without a text. */
function useSearch(text: string, onFault: (thrown: unknown) => void): readonly Found[] | null {
  const [found, setFound] = useState<readonly Found[] | null>(null);
  useEffect(() => {
    if (text.trim() === "") {
      setFound(null);
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => {
      ask<readonly Found[]>("/search", { SearchText: text, "Paging.ItemsPerPage": FOUND_MAX }, stop.signal).then(
        setFound,
        (thrown: unknown) => {
          if (!stop.signal.aborted) onFault(thrown);
        },
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  return found;
}

function Results({ found, ...props }: TreeProps & { readonly found: readonly Found[] }): Element {
  const items = found.map((one) => {
    const where = [one.entity === "Site" ? null : one.siteName, one.entity === "Variable" ? one.sourceName : null];
    const path = [...where, one.serialNumber].filter((text) => text !== null && text !== "").join(" › ");
    const detail = html`<span class="detail"><bdi>${path}</bdi></span>`;
    if (one.entity === "Variable")
      return html`<li key=${`v${one.id}`}><${Leaf} id=${one.id} name=${one.name} detail=${detail} ...${props} /></li>`;
    const query = one.entity === "Site" ? { SiteId: one.id } : { SourceId: one.id };
    const level = one.entity === "Site" ? "sources" : "variables";
    const label = html`<span class="kind">${TEXTS.kinds[one.entity]}</span> <bdi>${one.name}</bdi>${detail}`;
    return html`<li key=${`${one.entity}${one.id}`}>
      <${Branch} label=${label} level=${level} query=${query} ...${props} />
    </li>`;
  });
  return html`<ul class="nodes">${items}</ul>`;
}

function Sites(props: TreeProps): Element {
  return html`<${List} level="sites" query=${{}} ...${props} />`;
}

type Level = "sites" | "sources" | "variables";
interface Node {
  readonly id: number;
  readonly name: string;
  readonly serialNumber?: string | null;
}

const LEVELS: Readonly<Record<Level, { readonly display: Parameters; readonly empty: string }>> = {
  sites: { display: { DisplayLevel: "SiteLight" }, empty: TEXTS.noSites },
  sources: { display: { DisplayLevel: "Light" }, empty: TEXTS.noSources },
  variables: { display: {}, empty: TEXTS.noVariables },
};

function List({ level, query, ...props }: TreeProps & { readonly level: Level; readonly query: Parameters }): Element {
  const [nodes, setNodes] = useState<readonly Node[] | null>(null);
  const [isWhole, setWhole] = useState(false);
  const load = (page: number, before: readonly Node[]) => {
    const paging = { "Paging.PageNumber": page, "Paging.ItemsPerPage": PAGE };
    const parameters = { ...LEVELS[level].display, ...query, ...paging };
    ask<readonly (Site | Source | Variable)[]>(`/${level}`, parameters).then((list) => {
      setNodes([...before, ...(list as readonly Node[])]);
      setWhole(list.length < PAGE);
    }, props.onFault);
  };
  useEffect(() => load(0, []), []);
  if (nodes === null) return html`<p class="muted">${TEXTS.loading}</p>`;
  if (nodes.length === 0) return html`<p class="muted">${LEVELS[level].empty}</p>`;
  const more = () => load(Math.ceil(nodes.length / PAGE), nodes);
  return html`<ul class="nodes">${nodes.map((node) => html`<li key=${node.id}>${nodeOf(level, node, props)}</li>`)}</ul>
    ${isWhole ? null : html`<button type="button" class="plain small" onClick=${more}>${TEXTS.more}</button>`}`;
}

function nodeOf(level: Level, { id, name, serialNumber }: Node, props: TreeProps): Element {
  if (level === "variables") return html`<${Leaf} id=${id} name=${name} ...${props} />`;
  const number = serialNumber ?? "";
  const detail = number === "" || number === name ? null : html`<span class="detail"><bdi>${number}</bdi></span>`;
  const label = html`<bdi>${name}</bdi>${detail}`;
  const below =
    level === "sites" ? { level: "sources", query: { SiteId: id } } : { level: "variables", query: { SourceId: id } };
  return html`<${Branch} label=${label} ...${below} ...${props} />`;
}

interface BranchProps extends TreeProps {
  readonly label: Content;
  readonly level: Level;
  readonly query: Parameters;
}

function Branch({ label, ...below }: BranchProps): Element {
  const [isOpen, setOpen] = useState(false);
  return html`<button type="button" class="node" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <span class="arrow" aria-hidden="true"></span><span>${label}</span>
    </button>
    ${isOpen ? html`<${List} ...${below} />` : null}`;
}

interface LeafProps extends TreeProps {
  readonly id: number;
  readonly name: string;
  readonly detail?: Content;
}

function Leaf({ id, name, detail, chosen, onChoose }: LeafProps): Element {
  const isChosen = chosen.includes(id);
  const own = useRef<HTMLButtonElement>(null);
  const add = () => {
    onChoose(id, true);
    // The button goes, and the focus stays beside it.
    own.current?.focus();
  };
  return html`<div class="leaf">
    <button type="button" class="node" ref=${own} aria-pressed=${isChosen} onClick=${() => onChoose(id, false)}>
      <span><bdi>${name}</bdi>${detail}</span>
    </button>
    ${
      isChosen || chosen.length === 0
        ? null
        : html`<button type="button" class="plain small" title=${TEXTS.add} aria-label=${`${TEXTS.add}: ${name}`}
            onClick=${add}>+</button>`
    }
  </div>`;
}
