// Where cards stand and lines run. Cards stand around a rectangle, lines inside it: anchors lie on its edge and control points
// within, and a curve never leaves the hull of those. So no line crosses a card. Pure.

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

type Side = 'left' | 'top' | 'right' | 'bottom';

export interface Spot extends Box {
  readonly side: Side;
  /** Where lines begin and end. */
  readonly anchor: Point;
}

export interface Stage {
  readonly width: number;
  readonly height: number;
  readonly isCompact: boolean;
  /** All lines are inside. */
  readonly inside: Box;
  readonly spots: readonly Spot[];
}

const roomy = { width: 176, height: 66 };
const compact = { width: 132, height: 44 };
/** With more cards than this they are smaller. */
const roomyMax = 14;
const gap = 16;
/** Above a card, for the name of its region. */
const labelHeight = 22;
const insideHeightMin = 220;
const insideWidthMin = 160;
/** With so few cards, two columns are enough. */
const columnsMax = 6;

/** Spots in the order of the cards: `split` of a few down the left side and the others down the right, or all around. */
export function layOut(count: number, width: number, split: number = Math.ceil(count / 2)): Stage {
  const isCompact = count > roomyMax || width < 720;
  const card = isCompact ? compact : roomy;
  const stepY = card.height + gap + labelHeight;
  const insideWidth = Math.max(insideWidthMin, width - 2 * card.width - 2);
  const rowMax = Math.max(1, Math.floor((insideWidth + gap) / (card.width + gap)));
  const sides = shareOut(count, rowMax, split);
  const isAround = sides.top + sides.bottom > 0;
  const band = isAround ? card.height + labelHeight : 0;
  const rows = Math.max(sides.left, sides.right);
  const insideHeight = Math.max(insideHeightMin, rows * stepY);
  const inside = { x: card.width, y: band, width: insideWidth, height: insideHeight };
  const whole = { width: insideWidth + 2 * card.width, height: insideHeight + 2 * band };
  const column = (side: 'left' | 'right', number: number) =>
    spread(number, inside.height).map((centre): Spot => {
      const y = inside.y + centre - card.height / 2 + labelHeight / 2;
      const x = side === 'left' ? 0 : inside.x + inside.width;
      const anchor = { x: side === 'left' ? inside.x : x, y: y + card.height / 2 };
      return { ...card, x, y, side, anchor };
    });
  const row = (side: 'top' | 'bottom', number: number) =>
    spread(number, inside.width).map((centre): Spot => {
      const x = inside.x + centre - card.width / 2;
      const y = side === 'top' ? labelHeight : inside.y + inside.height;
      const anchor = { x: x + card.width / 2, y: side === 'top' ? inside.y : y };
      return { ...card, x, y, side, anchor };
    });
  const left = column('left', sides.left);
  const spots = [
    ...(isAround ? left.toReversed() : left),
    ...row('top', sides.top),
    ...column('right', sides.right),
    ...row('bottom', sides.bottom).toReversed(),
  ];
  return { ...whole, isCompact, inside, spots };
}

function shareOut(count: number, rowMax: number, split: number): Readonly<Record<Side, number>> {
  if (count <= columnsMax) return { left: split, right: count - split, top: 0, bottom: 0 };
  const across = Math.min(2 * rowMax, Math.floor(count / 2));
  const beside = count - across;
  return {
    left: Math.ceil(beside / 2),
    right: Math.floor(beside / 2),
    top: Math.ceil(across / 2),
    bottom: Math.floor(across / 2),
  };
}

/** The middles of so many equal parts. */
function spread(count: number, length: number): number[] {
  return Array.from({ length: count }, (_, index) => ((index + 0.5) * length) / count);
}

export type Curve = readonly [Point, Point, Point, Point];

/** From one spot to another. The way back is another curve: its bend differs. */
export function curveOf(from: Spot, to: Spot, inside: Box): Curve {
  const middle = { x: inside.x + inside.width / 2, y: inside.y + inside.height / 2 };
  const isSameSide = from.side === to.side;
  const pull = isSameSide ? 0.42 : 0.5;
  const lean = 14;
  return [
    from.anchor,
    within(bend(from, middle, pull, lean), inside),
    within(bend(to, middle, pull, -lean), inside),
    to.anchor,
  ];
}

/** Straight into the inside, and a little to the one hand. */
function bend({ anchor, side }: Spot, middle: Point, pull: number, lean: number): Point {
  const isAcross = side === 'left' || side === 'right';
  const sign = side === 'left' || side === 'bottom' ? 1 : -1;
  return isAcross
    ? { x: anchor.x + pull * (middle.x - anchor.x), y: anchor.y + sign * lean }
    : { x: anchor.x + sign * lean, y: anchor.y + pull * (middle.y - anchor.y) };
}

function within({ x, y }: Point, box: Box): Point {
  return {
    x: Math.min(box.x + box.width, Math.max(box.x, x)),
    y: Math.min(box.y + box.height, Math.max(box.y, y)),
  };
}

export function pathOf([start, first, second, end]: Curve): string {
  const text = ({ x, y }: Point) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  return `M ${text(start)} C ${text(first)}, ${text(second)}, ${text(end)}`;
}

export function pointOn([a, b, c, d]: Curve, t: number): Point {
  const mix = (w: number, x: number, y: number, z: number) =>
    (1 - t) ** 3 * w + 3 * t * (1 - t) ** 2 * x + 3 * t ** 2 * (1 - t) * y + t ** 3 * z;
  return { x: mix(a.x, b.x, c.x, d.x), y: mix(a.y, b.y, c.y, d.y) };
}
