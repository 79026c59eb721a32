export interface ImageLayout {
  addImage(image: {
    readonly architecture: string;
    /** Folders, the lowest layer first. */
    readonly layers: readonly string[];
    readonly config: object;
    readonly work: string;
  }): string;
  finish(version: string): string;
}
export function createLayout(out: string, options: { readonly createdAt: Date }): ImageLayout;
