/* SPDX-License-Identifier: MIT */
/* Browsers refuse workers to pages opened from disk, and the search runs in one.  There, a hidden
   frame takes the worker's place, so that the search works without a web server. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.ready = new Promise((resolve) => {
        this.frame = document.createElement("iframe");
        this.frame.hidden = true;
        this.frame.srcdoc = "<body></body>";
        this.frame.onload = () => {
          const inside = this.frame.contentWindow;
          inside.postMessage = (data) => {
            this.dispatchEvent(new MessageEvent("message", { data }));
          };
          inside.importScripts = (...urls) => Promise.all(urls.map((one) => load(inside, one)));
          load(inside, url).then(() => resolve(inside));
        };
        document.body.appendChild(this.frame);
      });
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };

  const load = (inside, url) =>
    new Promise((resolve, reject) => {
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = reject;
      inside.document.body.appendChild(script);
    });
}
