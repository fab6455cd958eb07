// The wheel of a mouse and the gestures of a touchpad, which browsers report as a wheel.

const LINE = 30; // pixels; some browsers count in lines
const PER_E = 600; // pixels that change the size by a factor of e
const PINCH = 8; // a pinch on a touchpad is reported with the Ctrl key and in much smaller numbers

/** The factor by which a turn of the wheel enlarges. */
export function wheelFactor(event) {
  const pixels = event.deltaY * (event.deltaMode ? LINE : 1) * (event.ctrlKey ? PINCH : 1);
  return Math.exp(-pixels / PER_E);
}
