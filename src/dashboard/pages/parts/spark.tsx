// The last hour as a small line; gaps stay gaps.

export function Spark({ points, label }: { readonly points: readonly (number | null)[]; readonly label: string }) {
  const known = points.filter((one) => one !== null);
  if (known.length < 2) return null;
  const top = Math.max(...known, 0.001);
  const [width, height] = [92, 30];
  let isDrawing = false;
  const path = points
    .map((value, index) => {
      if (value === null) {
        isDrawing = false;
        return '';
      }
      const verb = isDrawing ? 'L' : 'M';
      isDrawing = true;
      const x = (index * width) / Math.max(1, points.length - 1);
      return `${verb}${x.toFixed(1)} ${(height - 1 - (value / top) * (height - 3)).toFixed(1)}`;
    })
    .join('');
  return (
    <svg className="spark" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} preserveAspectRatio="none">
      <path d={path} />
    </svg>
  );
}
