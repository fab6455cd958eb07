// Progress of a request; the matching time is estimated from earlier requests.

const $ = (id) => document.getElementById(id);

export class Progress {
  setStatus(text) {
    $("status").textContent = text;
  }

  async begin(name, model, files, scale, check) {
    $("running").hidden = false;
    $("progress").removeAttribute("value");
    this.name = name;
    this.expected = null;
    this.waiting = model ? model.taken : 0;
    this.setStatus(`${name}: sending the pair …`);
    clearInterval(this.timer);
    this.matching = null;
    this.timer = setInterval(() => this.tick(), 200);
    if (!model || !model.seconds_per_megapixel) return;
    try {
      const bitmap = await createImageBitmap(files.left);
      const recommended = Math.min(Math.max(model.upscale_to / bitmap.width, 1), model.max_upscale);
      const factor = Number(scale) || recommended;
      const megapixels = (bitmap.width * bitmap.height * factor ** 2) / 1e6;
      this.expected = megapixels * model.seconds_per_megapixel * (check ? 2 : 1) * (1 + this.waiting);
      bitmap.close();
    } catch {
      this.expected = null; // an image format that only the server can decode
    }
  }

  sent(share) {
    if (share < 1) this.setStatus(`${this.name}: sending, ${Math.round(100 * share)} %`);
    else this.matching = performance.now();
  }

  tick() {
    if (this.matching === null) return;
    const seconds = (performance.now() - this.matching) / 1000;
    const before = this.waiting ? `, ${this.waiting} requests ahead` : "";
    const about = this.expected ? ` of about ${Math.max(this.expected, 0.1).toFixed(1)} s` : " s";
    // The status is set only once, so that screen readers do not read every tick.
    if (!$("progress").dataset.spoken) this.setStatus(`${this.name}: matching${before} …`);
    $("progress").dataset.spoken = "yes";
    $("progress").title = `${seconds.toFixed(1)}${about}`;
    $("go").textContent = `Matching … ${seconds.toFixed(1)}${about}`;
    if (this.expected) $("progress").value = 1 - Math.exp((-2.3 * seconds) / this.expected);
  }

  end(text) {
    clearInterval(this.timer);
    $("running").hidden = true;
    $("go").textContent = "Match";
    delete $("progress").dataset.spoken;
    this.setStatus(text);
  }
}
