package cli

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestCommandsForPodsAskTheServer runs them with a server that knows nothing, which they have to tell.
func TestCommandsForPodsAskTheServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, args := range []string{
		"rsh web", "rsh -c side web ls -l", "rsync --strategy=tar ./testdata/ web:/data", "debug web", "debug web -c side A=b -- env", "observe --listen-addr= pods -- true",
		"get pods -a", "exec web date", "exec web -c side -- ls -l", "deploy web", "deploy dc/web --latest --follow", "set route-backends web --zero", "set deployment-hook dc/web --pre -- true",
	} {
		words := append([]string{"--server=" + server.URL, "--namespace=shop"}, strings.Fields(args)...)
		_, stderr, code := client(t, "oc", nil, words...)
		if code == 0 || !strings.Contains(stderr, "could not find the requested resource") && !strings.Contains(stderr, "the server doesn't have a resource type") {
			t.Errorf("oc %s: code %d, %s", args, code, stderr)
		}
	}
}

func TestAShellIsToldOfTheTerminal(t *testing.T) {
	usual := []string{"/bin/sh", "-c", `TERM=$1 && export TERM && exec "$0"`, "/bin/sh"}
	for _, c := range []struct {
		program  string
		words    []string
		terminal string
		want     []string
	}{
		{"/bin/sh", nil, "screen", append(slices.Clone(usual), "screen")},
		{"/bin/sh", nil, "", append(slices.Clone(usual), "xterm")},
		{"/bin/sh", nil, "x; reboot", append(slices.Clone(usual), "x; reboot")},
		{"/bin/bash", nil, "screen", []string{"/bin/bash"}},
		{"/bin/sh", []string{"ls", "-l"}, "screen", []string{"ls", "-l"}},
		{"/bin/sh", []string{"--", "ls"}, "screen", []string{"ls"}},
	} {
		if got := (&shell{program: c.program}).command(c.words, c.terminal); !slices.Equal(got, c.want) {
			t.Errorf("%s %q in %s: %q, want %q", c.program, c.words, c.terminal, got, c.want)
		}
	}
}

func TestAShellHasATerminalWhereTheCallerHas(t *testing.T) {
	for _, c := range []struct{ force, plain, here, want bool }{
		{here: true, want: true}, {}, {plain: true, here: true}, {force: true, want: true},
	} {
		if got := (&shell{force: c.force, plain: c.plain}).terminal(c.here); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
