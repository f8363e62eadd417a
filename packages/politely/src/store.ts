import "./withSharing.js";

export { cellStore } from "./stores/cellStore.js";
export type { CellChange, Cells, CellWrite, ChangeCells } from "./stores/cells.js";
