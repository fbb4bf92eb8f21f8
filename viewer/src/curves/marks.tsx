// What follows the reader over a curve. Elements and not paint, so that moving the crosshair draws no curve again.

import { type Picture, xOf } from "./draw";

export interface Marks {
  cross: number | null;
  pointed: number | null;
  brush: [number, number] | null;
  /** What the heat map has in sight. */
  sight: [number, number] | null;
}

export function Over({ picture, marks }: { picture: Picture; marks: Marks }) {
  return (
    <>
      {marks.brush && <Mark name="brush" picture={picture} box={span(picture, marks.brush)} />}
      {marks.sight && <Mark name="sight" picture={picture} box={span(picture, marks.sight)} />}
      {marks.pointed !== null && <Mark name="pointed" picture={picture} box={line(picture, marks.pointed)} />}
      {marks.cross !== null && <Mark name="cross" picture={picture} box={line(picture, marks.cross)} />}
    </>
  );
}

interface Box {
  left: number;
  width: number;
}

/** Whole cells, never narrower than can be seen. */
export function span(picture: Picture, [first, end]: [number, number]): Box {
  const [left, right] = [xOf(picture, first / picture.count), xOf(picture, end / picture.count)];
  return { left, width: Math.max(2, right - left) };
}

/** The middle of a place. */
export function line(picture: Picture, place: number): Box {
  return { left: Math.round(xOf(picture, picture.across(place))), width: 0 };
}

function Mark({ name, picture, box }: { name: string; picture: Picture; box: Box }) {
  const { margin, height } = picture;
  const style = {
    left: `${box.left}px`,
    width: `${box.width}px`,
    top: `${margin.top}px`,
    height: `${height - margin.top - margin.bottom}px`,
  };
  return <span class={`curve-mark curve-${name}`} style={style} />;
}
