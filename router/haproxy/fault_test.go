package haproxy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/router/model"
)

// hanging makes the next HAProxy process hang until the returned file is removed.
func (b *fixture) hanging() (file string) {
	b.t.Helper()
	file = filepath.Join(b.writer.Dir, "hang")
	program := filepath.Join(b.writer.Dir, "program")
	script := "#!/bin/sh\n[ -e " + file + " ] && exec sleep 1000\nexec " + b.engine.Program + ` "$@"` + "\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		b.t.Fatal(err)
	}
	b.engine.Program = program
	return file
}

func TestHangingHAProxyDoesNotTakeOver(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	file := b.hanging()
	b.engine.TakeoverTimeout = 2 * time.Second
	b.pod("web", "web", nil)
	b.route("web", "web.com", "web")
	b.run()
	b.until("http://web.com", "web")
	stop := b.load("http://web.com")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// No spare backend has this shape, so the route needs a reload.
	b.route("slow", "slow.com", "web", annotated("haproxy.router.openshift.io/timeout", "20s"))
	b.apply()
	b.route("plain", "plain.com", "web")
	b.apply()
	b.until("http://plain.com", "web") // the previous process responds
	if got := <-b.refused; !strings.Contains(got.reason.Error(), "did not respond") || len(got.routes) > 0 {
		t.Errorf("the reported error is %v", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	b.until("http://slow.com", "web")
	if failed := stop(); len(failed) > 0 {
		t.Errorf("%d requests failed, the first with %s", len(failed), failed[0])
	}
}

func TestRejectedRouteIsFound(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("web", "web", nil)
	for i := range 40 {
		b.route("r"+strconv.Itoa(i), "h"+strconv.Itoa(i)+".com", "web")
	}
	b.run()
	b.until("http://h7.com", "web")
	broken := *b.config()
	broken.Backends = slices.Clone(broken.Backends)
	for i, backend := range broken.Backends {
		if strings.HasSuffix(backend.Name, ":r7") || strings.HasSuffix(backend.Name, ":r31") {
			changed := *backend
			changed.Shape += "  nonsense\n"
			broken.Backends[i] = &changed
		}
	}
	b.engine.Set(&broken)
	if got := <-b.refused; !slices.Equal(got.routes, []model.ServiceAliasConfigKey{"shop:r31", "shop:r7"}) {
		t.Errorf("found %v, for %v", got.routes, got.reason)
	}
	b.until("http://h7.com", "web")
}

// The endpoints of other routes are updated even if HAProxy rejects part of one route or a reload
// fails.
func TestRejectedCommandDelaysOnlyItsRoute(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.pod("bad", "bad", nil)
	b.pod("bad", "bad", nil)
	b.pod("good", "first", nil)
	b.route("bad", "bad.com", "bad")
	b.route("good", "good.com", "good")
	b.run()
	b.until("http://good.com", "first")
	config := b.config()
	name := "be_http:shop:bad/" + config.Backends[0].Servers[0].Name
	refused, err := b.engine.control().sendAll([]string{"set server " + name + " state maint", "del server " + name})
	if err != nil || len(refused) > 0 {
		t.Fatalf("remove a server without the engine: %v, %v", refused, err)
	}
	config.Frame += "\nnonsense\n" // HAProxy rejects this line, so every reload fails
	b.pods["bad"] = b.pods["bad"][1:]
	b.pods["good"] = nil
	b.pod("good", "second", nil)
	next := b.config()
	next.Frame = config.Frame
	b.engine.Set(next)
	b.until("http://good.com", "second")
	<-b.refused
	b.pods["good"] = nil
	b.pod("good", "third", nil)
	last := b.config()
	last.Frame = config.Frame
	b.engine.Set(last)
	b.until("http://good.com", "third")
	if got := len(b.refused); got > 5 {
		t.Errorf("%d more attempts were made", got)
	}
}

func TestReloadsBackOff(t *testing.T) {
	now := &running{}
	var waits []time.Duration
	for range 12 {
		now.hold(false)
		waits = append(waits, time.Until(now.retry).Round(time.Second))
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}; !slices.EqualFunc(waits[:8], want, func(got, want time.Duration) bool { return got == want*time.Second }) || waits[11] != maxBackoff {
		t.Errorf("the delays are %v", waits)
	}
	now.hold(true)
	if got := time.Until(now.retry); got > minBackoff {
		t.Errorf("with a known reason, the delay is %s", got)
	}
}

// The search for rejected routes can take a minute. If a user fixes a route during the search,
// HAProxy must serve the route.
func TestRouteFixedDuringSearchIsServed(t *testing.T) {
	config := func(shape, certificate string) *Config {
		return &Config{
			Backends: []*Backend{{Name: "be_edge_http:shop:bad", Shape: shape}, {Name: "be_http:shop:worse", Shape: "nonsense"}},
			Files:    map[string][]byte{certificateFile("shop:bad"): []byte(certificate)},
		}
	}
	for name, tt := range map[string]struct {
		desired *Config
		want    []model.ServiceAliasConfigKey
	}{
		"other settings":    {config("good", "old"), []model.ServiceAliasConfigKey{"shop:worse"}},
		"other certificate": {config("bad", "new"), []model.ServiceAliasConfigKey{"shop:worse"}},
		"no routes":         {&Config{}, []model.ServiceAliasConfigKey{}},
		"nothing else":      {config("bad", "old"), []model.ServiceAliasConfigKey{"shop:bad", "shop:worse"}},
	} {
		var keys []model.ServiceAliasConfigKey
		e := &Engine{Rejected: func(routes []model.ServiceAliasConfigKey, _ error) { keys = routes }}
		e.Set(tt.desired)
		now := &running{files: map[string][]byte{}, reload: &reload{config: config("bad", "old"), rejected: []model.ServiceAliasConfigKey{"shop:bad", "shop:worse"}}}
		if err := e.finish(now, errors.New("unknown keyword")); err == nil || !slices.Equal(keys, tt.want) {
			t.Errorf("with %s, rejected: %v (%v)", name, keys, err)
		}
	}
}
