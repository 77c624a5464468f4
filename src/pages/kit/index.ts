/** The parts of which all pages are made; the browser may load them, too. `render.ts` is for the server alone. */
export { Button, Checks, FaultSummary, type Faults, Field, Form, Select } from "./forms.ts";
export { type Content, type Element, html } from "./html.ts";
export { Layout, type LayoutProps, type PageLink, Tabs } from "./layout.ts";
export { Card, Facts, Moment, Notice, QrCode, Table } from "./parts.ts";
export { STYLESHEET } from "./stylesheet.ts";
