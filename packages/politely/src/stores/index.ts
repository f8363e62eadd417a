export { cellStore } from "./cellStore.js";
export type { CellChange, Cells, CellWrite, ChangeCells } from "./cells.js";
