// The form for the left image, the right image and the calibration with its options.

const $ = (id) => document.getElementById(id);
const PREVIEWED = /\.(png|jpe?g|webp|bmp)$/i; // formats that browsers can show

export class PairForm {
  constructor(changed) {
    this.files = {};
    this.changed = changed;
    for (const zone of document.querySelectorAll(".drop")) this.listen(zone);
    // Files dropped outside the zones must not make the browser leave the page; two images are a pair.
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => { event.preventDefault(); this.take([...event.dataTransfer.files], null); });
    $("swap").addEventListener("click", () => this.set({ left: this.files.right, right: this.files.left }));
    $("forget-calib").addEventListener("click", () => this.clearCalibration());
  }

  get complete() {
    return Boolean(this.files.left && this.files.right);
  }

  listen(zone) {
    const input = zone.querySelector("input");
    input.addEventListener("change", () => { this.take([...input.files], zone.dataset.part); input.value = ""; });
    for (const kind of ["dragenter", "dragover"]) zone.addEventListener(kind, () => zone.classList.add("over"));
    for (const kind of ["dragleave", "drop"]) zone.addEventListener(kind, () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      event.stopPropagation();
      this.take([...event.dataTransfer.files], zone.dataset.part);
    });
  }

  /** Assign files: a single file to the zone where it was dropped, several files by type and name. */
  take(files, part) {
    if (files.length === 1 && part) {
      this.set({ [part]: files[0] });
      return;
    }
    const images = files.filter((file) => file.type.startsWith("image/") || /\.(pgm|ppm|tiff?)$/i.test(file.name));
    const others = files.filter((file) => !images.includes(file));
    images.sort((a, b) => side(a.name) - side(b.name) || a.name.localeCompare(b.name, "en", { numeric: true }));
    if (images.length === 1) this.set({ [this.files.left ? "right" : "left"]: images[0] });
    if (images.length > 1) this.set({ left: images[0], right: images[1] });
    others.sort((a, b) => side(a.name) - side(b.name));
    if (others.length) this.set({ calib: others[0], calib_right: others[1] });
  }

  clearCalibration() {
    this.set({ calib: undefined, calib_right: undefined });
    $("unit").value = "";
    $("rectified").checked = $("resized").checked = false;
  }

  /** The query parameters about the calibration. */
  get options() {
    if (!this.files.calib) return {};
    const options = { unit: $("unit").value, rectified: $("rectified").checked, resized: $("resized").checked };
    return Object.fromEntries(Object.entries(options).filter(([, value]) => value));
  }

  set(files) {
    for (const [part, file] of Object.entries(files)) {
      this.files[part] = file;
      this.preview(document.querySelector(`.drop[data-part="${part}"]`), file);
    }
    $("forget-calib").hidden = !this.files.calib && !this.files.calib_right;
    this.changed();
  }

  preview(zone, file) {
    const hint = zone.querySelector(".hint");
    hint.dataset.empty ||= hint.textContent;
    hint.textContent = file ? file.name : hint.dataset.empty;
    zone.classList.toggle("full", Boolean(file));
    const image = zone.querySelector("img");
    if (!image) return;
    URL.revokeObjectURL(image.src);
    image.hidden = !file || !PREVIEWED.test(file.name);
    if (image.hidden) zone.classList.remove("full");
    else image.src = URL.createObjectURL(file);
    image.alt = file ? `Preview of ${file.name}` : "";
  }
}

/** −1 for the file name of a left image, 1 for that of a right image, 0 if unknown. */
function side(name) {
  if (/left|(^|[_.-])l[_.-]|im0|_10_l/i.test(name)) return -1;
  return /right|(^|[_.-])r[_.-]|im1/i.test(name) ? 1 : 0;
}
