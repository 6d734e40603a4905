package haproxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// visit sends a request with cookies. It returns the pod that responded, the cookies that the pod
// received, and the cookie that the router set.
func (b *fixture) visit(url, cookies string) (pod, value string, set *http.Cookie) {
	b.t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if cookies != "" {
		request.Header.Set("Cookie", cookies)
	}
	response, err := b.client(nil).Do(request)
	if err != nil {
		return err.Error(), "", nil
	}
	defer response.Body.Close()
	_, _ = fmt.Fscan(response.Body, &pod)
	for _, cookie := range response.Cookies() {
		set = cookie
	}
	return pod, response.Header.Get("Got-Cookie"), set
}

// When a route moves from a spare backend to its own backend, clients stay with their pods, and
// metrics use the same name.
func TestSpareBackendHasCookieAndNameOfRoute(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "usual"} {
		b := newFixture(t, map[string]string{"RELOAD_INTERVAL": "1h", "ROUTER_LOAD_BALANCE_ALGORITHM": "roundrobin", "ROUTER_COOKIE_NAME": name})
		for i := range 5 {
			b.pod("web", fmt.Sprint("pod", i), nil)
		}
		b.run()
		b.route("web", "web.com", "web")
		b.apply()
		eventually.True(t, "response of the route", func() bool { return strings.HasPrefix(b.who("http://web.com"), "pod") })
		home, _, cookie := b.visit("http://web.com", "")
		want := name
		if want == "" {
			want = b.builder.State().Aliases["shop:web"].RoutingKeyName
		}
		if cookie == nil || cookie.Name != want || cookie.Value == "" {
			t.Fatalf("%s sets %v, want a cookie %q", home, cookie, want)
		}
		header := cookie.Name + "=" + cookie.Value
		stays := func() {
			for _, sent := range [][2]string{
				{header, ""}, {"a=b; " + header, "a=b"}, {header + "; c=d", "c=d"}, {"a=b;" + header + ";c=d", "a=b;c=d"}, {"x" + header + "; " + header, "x" + header},
			} {
				pod, value, _ := b.visit("http://web.com", sent[0])
				if pod != home || strings.ReplaceAll(value, "; ", ";") != strings.ReplaceAll(sent[1], "; ", ";") {
					t.Errorf("with the cookies %q, %s responds instead of %s, and receives %q", sent[0], pod, home, value)
				}
			}
			if pod, value, _ := b.visit("http://web.com", "a=b"); !strings.HasPrefix(pod, "pod") || value != "a=b" {
				t.Errorf("without a cookie of the router, %q responds and receives %q", pod, value)
			}
		}
		stays()
		stats, err := b.engine.Stats()
		if err != nil || strings.Contains(stats, sparePrefix) || !strings.Contains(stats, "\nbe_http:shop:web,pod:") || strings.Count(stats, "\nbe_http:shop:web,BACKEND") != 1 {
			t.Errorf("the statistics are\n%s (%v)", stats, err)
		}
		b.killWorker()
		eventually.True(t, "the route's own backend", func() bool {
			stats, err := b.engine.control().send("show stat")
			return err == nil && strings.Contains(stats, "\nbe_http:shop:web,BACKEND")
		})
		eventually.True(t, "response of the route", func() bool { return strings.HasPrefix(b.who("http://web.com"), "pod") })
		stays()
	}
}

func TestStatisticsOmitReplacedBackends(t *testing.T) {
	const stats = "# pxname,svname\nbe_http:a:b,BACKEND,1\nspare:1,BACKEND,2\nspare:2,BACKEND,3\nother,BACKEND,4\n"
	if got, want := named(stats, map[string]string{"be_http:a:b": "spare:2"}), "# pxname,svname\nbe_http:a:b,BACKEND,3\nother,BACKEND,4\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
