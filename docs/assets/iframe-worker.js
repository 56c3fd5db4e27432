// A browser starts no worker from a page on a disk: the search then runs in a hidden frame, which speaks as a worker does.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = (this.inner = frame.contentWindow);
      inner.document.open();
      inner.document.close();
      inner.postMessage = (data) => this.answer(data); // what the script says, to this page
      inner.importScripts = (...urls) =>
        urls.reduce((before, one) => before.then(() => this.load(new URL(one, url))), Promise.resolve());
      this.ready = this.load(url).then(() => {
        for (const data of this.waiting) this.tell(data);
        this.waiting = null;
      });
    }
    load(url) {
      return new Promise((done, failed) => {
        const script = this.inner.document.createElement("script");
        Object.assign(script, { src: url, onload: done, onerror: failed });
        this.inner.document.body.append(script);
      });
    }
    tell(data) {
      this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.tell(data);
    }
    answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    terminate() {
      this.inner.frameElement.remove();
    }
  };
}
