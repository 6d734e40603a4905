package pod

import (
	"slices"
	"testing"
)

func TestShellGetsTerminalType(t *testing.T) {
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

func TestShellHasTerminalIfCallerHas(t *testing.T) {
	for _, c := range []struct{ force, plain, local, want bool }{
		{local: true, want: true}, {}, {plain: true, local: true}, {force: true, want: true},
	} {
		if got := (&shell{force: c.force, plain: c.plain}).terminal(c.local); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
