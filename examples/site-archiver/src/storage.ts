import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Keeps pages as files of one folder. */
export class Storage {
  constructor(readonly folder: string) {}

  /** Writes one page and resolves to its file. A file is there as a whole or not at all. */
  async save(path: string, content: Uint8Array): Promise<string> {
    await mkdir(this.folder, { recursive: true });
    // Encoded, a path is one name: it cannot lead out of the folder, and no two paths share a file.
    const file = join(this.folder, `${encodeURIComponent(path.slice(1) || path)}.html`);
    await writeFile(`${file}.part`, content);
    await rename(`${file}.part`, file);
    return file;
  }
}
