// Reloads the page a few times if the browser cannot load the first script or style sheet of the
// console. Later loads are retried by the code that starts them. A browser on a node aborts
// requests when a pod starts.
(function () {
  var key = 'failed-loads';
  var maxReloads = 5;
  var delay = 500;
  var failed = false;
  addEventListener(
    'error',
    function (event) {
      var tag = event.target && event.target.tagName;
      var isFirst = document.querySelector('.console-boot') !== null || document.body === null;
      if (failed || !isFirst || (tag !== 'SCRIPT' && (tag !== 'LINK' || event.target.rel !== 'stylesheet'))) {
        return;
      }
      failed = true;
      var count = Number(sessionStorage.getItem(key)) + 1;
      if (count > maxReloads) {
        sessionStorage.removeItem(key);
        return; // the page explains the next step
      }
      sessionStorage.setItem(key, String(count));
      setTimeout(function () {
        location.reload();
      }, count * delay);
    },
    true,
  );
  addEventListener('load', function () {
    if (!failed) {
      sessionStorage.removeItem(key);
    }
  });
})();
