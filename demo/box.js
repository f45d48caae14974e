// A box that is dragged over the first picture is the region to erase, in percent of the picture.
const inside = (value) => Math.min(Math.max(value, 0), 100);
let from = null;
let frame = null;
const place = (event, picture) => {
  const box = picture.getBoundingClientRect();
  return [
    inside((100 * (event.clientX - box.left)) / box.width),
    inside((100 * (event.clientY - box.top)) / box.height),
  ];
};
const region = (a, b) => ({
  left: Math.round(Math.min(a[0], b[0])),
  top: Math.round(Math.min(a[1], b[1])),
  width: Math.max(4, Math.round(Math.abs(a[0] - b[0]))),
  height: Math.max(4, Math.round(Math.abs(a[1] - b[1]))),
});
element.addEventListener("pointerdown", (event) => {
  const picture = event.target.closest(".halo-pictures li:first-child img");
  if (!picture) return;
  event.preventDefault();
  from = { at: place(event, picture), picture };
  frame = document.createElement("i");
  frame.className = "halo-frame";
  picture.parentElement.append(frame);
});
element.addEventListener("pointermove", (event) => {
  if (!from) return;
  const { left, top, width, height } = region(from.at, place(event, from.picture));
  const { clientWidth, clientHeight } = from.picture;
  Object.assign(frame.style, {
    left: `${(left * clientWidth) / 100}px`,
    top: `${(top * clientHeight) / 100}px`,
    width: `${(width * clientWidth) / 100}px`,
    height: `${(height * clientHeight) / 100}px`,
  });
});
window.addEventListener("pointerup", (event) => {
  if (!from) return;
  const drawn = region(from.at, place(event, from.picture));
  from = null;
  frame.remove();
  trigger("click", drawn);
});
