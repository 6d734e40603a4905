package haproxy

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// load continuously sends requests, some of them slow, until stop is called. stop returns the
// failures.
func (b *fixture) load(url string) (stop func() []string) {
	var group sync.WaitGroup
	var end atomic.Bool
	var mu sync.Mutex
	var failed []string
	for i := range 4 {
		group.Go(func() {
			for !end.Load() {
				suffix := ""
				if i == 0 {
					suffix = "?wait=300ms"
				}
				if status, body, _ := b.get(url + suffix); status != http.StatusOK {
					mu.Lock()
					failed = append(failed, strconv.Itoa(status)+" "+body)
					mu.Unlock()
				}
			}
		})
	}
	return func() []string {
		end.Store(true)
		group.Wait()
		return failed
	}
}

func (b *fixture) reloaded() int { return len(b.reloads) }

func TestServersChangeWithoutReload(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "first", nil)
	inside := b.authority.Issue(t, "pod")
	b.pod("tls", "t1", &inside)
	b.route("web", "web.com", "web")
	b.route("tls", "tls.com", "tls", secured(routev1.TLSConfig{Termination: "reencrypt", DestinationCACertificate: text(t, b.authority.File)}))
	b.route("pass", "pass.com", "tls", secured(routev1.TLSConfig{Termination: "passthrough"}))
	b.run()
	b.until("http://web.com", "first")
	before := b.reloaded()
	stop := b.load("http://web.com")

	b.pod("web", "second", nil)
	b.pod("tls", "t2", &inside)
	b.apply()
	b.until("http://web.com", "second")
	b.until("https://tls.com", "t2")
	_, _, header := b.get("http://web.com")
	if cookie := header.Get("Set-Cookie"); !strings.Contains(cookie, "=") || strings.Contains(cookie, "=;") {
		t.Errorf("the cookie of a later server is %q", cookie)
	}
	first := b.pods["web"][0]
	b.pods["web"], b.pods["tls"] = b.pods["web"][1:], b.pods["tls"][1:]
	b.apply()
	eventually.True(t, "the end of requests to the first pod", func() bool {
		stats, err := b.engine.Stats()
		return err == nil && !strings.Contains(stats, ":"+first[strings.LastIndex(first, ":")+1:]+",0,0,0,0,,")
	})
	b.until("https://tls.com", "t2")
	b.until("https://pass.com", "t2")
	for range 5 {
		b.pods["web"] = append(b.pods["web"], first)
		b.apply()
		b.until("http://web.com", "first")
		b.pods["web"] = b.pods["web"][:1]
		b.apply()
		b.until("http://web.com", "second")
	}
	b.pods["web"] = nil
	if failed := stop(); len(failed) > 0 {
		t.Errorf("%d requests failed: %v", len(failed), failed[0])
	}
	b.apply()
	b.until("http://web.com", "503")
	if got := b.reloaded(); got != before {
		t.Errorf("HAProxy was reloaded %d times", got-before)
	}
}

func TestReloadsLoseNoRequest(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	b.route("web", "web.com", "web")
	b.run()
	stop := b.load("http://web.com")
	for i := range 10 {
		name := "extra" + strconv.Itoa(i)
		// No spare backend has this shape, so HAProxy must reload.
		b.route(name, name+".com", "web", annotated("haproxy.router.openshift.io/timeout", strconv.Itoa(i+20)+"s"))
		b.apply()
		b.until("http://"+name+".com", "web")
	}
	if failed := stop(); len(failed) > 0 {
		t.Errorf("%d requests failed: %v", len(failed), failed[0])
	}
	eventually.True(t, "ten reloads", func() bool { return b.reloaded() >= 10 })
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the priority of the serving process", func() bool {
		response, _ := b.engine.control().send("show info")
		pid, _ := strconv.Atoi(workerOf(response))
		priority, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
		return err == nil && pid > 0 && priority == own
	})
}

// Spare backends serve plain routes without a reload. The paths contain characters that have a
// special meaning in HAProxy commands.
func TestRoutesChangeWithoutReload(t *testing.T) {
	t.Parallel()
	b := newFixture(t, map[string]string{"RELOAD_INTERVAL": "1h"})
	inside := b.authority.Issue(t, "pod")
	b.pod("web", "web", nil)
	b.pod("other", "other", nil)
	b.pod("tls", "tls", &inside)
	b.route("first", "first.com", "web")
	b.run()
	b.until("http://first.com", "web")
	b.route("plain", "plain.com", "web")
	b.route("below", "plain.com/below", "other")
	b.route("edge", "edge.com", "web", secured(routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Redirect"}))
	b.route("allow", "allow.com", "web", secured(routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Allow"}))
	b.route("reencrypt", "reencrypt.com", "tls", secured(routev1.TLSConfig{Termination: "reencrypt"}))
	b.route("passthrough", "passthrough.com", "tls", secured(routev1.TLSConfig{Termination: "passthrough"}))
	b.apply()
	for url, want := range map[string]string{
		"http://first.com": "web", "http://plain.com": "web", "http://plain.com/below/it": "other", "https://edge.com": "web", "http://edge.com": "302",
		"http://allow.com": "web", "https://allow.com": "web", "https://reencrypt.com": "tls", "https://passthrough.com": "tls",
	} {
		b.until(url, want)
	}
	b.routes["plain"].Spec.To.Name, b.routes["below"].Spec.Path = "other", "/elsewhere"
	delete(b.routes, "first")
	b.apply()
	b.until("http://plain.com/below", "other")
	b.until("http://plain.com/elsewhere", "other")
	b.until("http://first.com", "503")
	delete(b.routes, "allow")
	b.route("allow", "plain.com/a;shutdown;b", "web")
	b.apply()
	b.until("https://allow.com", "503")
	if got := b.reloaded(); got != 1 {
		t.Errorf("HAProxy was started %d times", got)
	}
}

// After a reload, each route's own backend serves the route, so its spare backend is free again.
func TestSpareBackendsAreFreeAfterReload(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	b.run()
	for i := range 3 * minSpares {
		name := fmt.Sprint("r", i)
		b.route(name, name+".com", "web")
		b.apply()
		b.until("http://"+name+".com", "web")
	}
	eventually.True(t, "the backend of the last route", func() bool {
		stats, err := b.engine.control().send("show stat")
		return err == nil && strings.Contains(stats, fmt.Sprintf("be_http:shop:r%d,", 3*minSpares-1))
	})
}

func TestReloadsAreCoalesced(t *testing.T) {
	t.Parallel()
	b := newFixture(t, map[string]string{"RELOAD_INTERVAL": "1s"})
	b.pod("web", "web", nil)
	b.run()
	eventually.Equal(t, "first start", b.reloaded, 1)
	for i := range 50 {
		name := "r" + strconv.Itoa(i)
		b.route(name, name+".com", "web")
		b.apply()
	}
	b.until("http://r49.com", "web")
	if got := b.reloaded(); got > 10 { // a busy machine can cause a few more
		t.Errorf("fifty simultaneous routes caused %d reloads", got)
	}
}

func TestRejectedConfigurationChangesNothing(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	b.route("web", "web.com", "web")
	b.run()
	broken := b.config()
	broken.Frame += "\nnonsense here\n"
	b.engine.Set(broken)
	if got := <-b.refused; !strings.Contains(got.reason.Error(), "nonsense") || len(got.routes) > 0 {
		t.Errorf("the rejection is %v", got)
	}
	b.until("http://web.com", "web")
	b.route("next", "next.com", "web")
	b.apply()
	b.until("http://next.com", "web")
}

// killWorker kills the worker and waits until another worker serves requests.
func (b *fixture) killWorker() {
	b.t.Helper()
	response, err := b.engine.control().send("show info")
	if err != nil {
		b.t.Fatal(err)
	}
	worker := workerOf(response)
	pid, err := strconv.Atoi(worker)
	if err != nil {
		b.t.Fatal(err)
	}
	kill(b.t, pid)
	eventually.True(b.t, "start of another worker", func() bool {
		now, err := b.engine.control().send("show info")
		return err == nil && workerOf(now) != worker
	})
}

func TestHAProxyRestarts(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	b.route("web", "web.com", "web")
	b.run()
	b.killWorker()
	b.until("http://web.com", "web")
	// The worker must exit when its master exits, and the master exits when the router exits.
	response, err := b.engine.control().send("show info")
	if err != nil {
		t.Fatal(err)
	}
	status := text(t, filepath.Join("/proc", workerOf(response), "status"))
	_, rest, _ := strings.Cut(status, "\nPPid:\t")
	line, _, _ := strings.Cut(rest, "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	kill(t, pid)
	eventually.True(t, "end of the worker", func() bool {
		_, err := os.Stat(filepath.Join("/proc", workerOf(response)))
		return err != nil
	})
	b.until("http://web.com", "web")
}

func TestReachedWaitsForWholeConfiguration(t *testing.T) {
	b := newFixture(t, map[string]string{"RELOAD_INTERVAL": "1h"})
	b.pod("web", "web", nil)
	b.run()
	reached := func(number int) func() bool { return func() bool { return b.engine.Reached(number) } }
	eventually.True(t, "the first configuration", reached(1))
	b.route("plain", "plain.com", "web")
	eventually.True(t, "a configuration that needs no reload", reached(b.engine.Set(b.config())))
	b.route("own", "own.com", "web", annotated("haproxy.router.openshift.io/timeout", "20s"))
	if b.engine.Reached(b.engine.Set(b.config())) {
		t.Error("a route that waits for a reload counts as served")
	}
}
