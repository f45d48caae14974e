// Search from the disk. A page at file:// may not start a worker, so the search's runs in a hidden
// frame of the page's own. Served pages keep the browser's workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      this.inside = this.frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== this.inside || event.data?.worker !== url) return;
        const message = new MessageEvent("message", { data: event.data.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      this.inside.document.open();
      this.inside.document.write(`<!doctype html><script>
        const page = parent;
        window.postMessage = (data) => page.postMessage({ worker: ${JSON.stringify(url)}, data }, "*");
        window.importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = done;
          document.head.appendChild(script);
        })));
      </script><script src="${url}"></script>`);
      this.inside.document.close();
      this.ready = new Promise((done) => (this.inside.onload = done));
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
