package preflight

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestPrintFitsHundredColumns(t *testing.T) {
	problems := []Problem{
		{Error, "program nft", "is not installed", "apt-get install -y mount nftables"},
		{Error, "program losetup", "is not installed", "apt-get install -y mount nftables"},
		{Error, "port 8443", strings.TrimSpace(strings.Repeat("words ", 20)), "kill 12\nset another port in servingInfo.bindAddress of master-config.yaml"},
		{Warning, "swap", "is enabled", "swapoff --all"},
	}
	var out strings.Builder
	if err := Print(&out, problems); err != nil {
		t.Fatal(err)
	}
	want := `error    program nft      is not installed
error    program losetup  is not installed
          fix it: apt-get install -y mount nftables
error    port 8443        words words words words words words words words words words words words
                          words words words words words words words words
          fix it: kill 12
              or: set another port in servingInfo.bindAddress of master-config.yaml
warning  swap             is enabled
          fix it: swapoff --all
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// closed is a writer that returns an error.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestReportFailsOnlyForErrors(t *testing.T) {
	warning, problem := Problem{Warning, "swap", "is enabled", "swapoff --all"}, Problem{Error, "port 8443", "is in use", "kill 12"}
	for _, tt := range []struct {
		name     string
		problems []Problem
		printed  string
		err      error
	}{
		{"no problems", nil, "", nil},
		{"only a warning", []Problem{warning}, "swapoff --all", nil},
		{"an error and a warning", []Problem{problem, warning}, "kill 12", errFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if err := Report(&out, tt.problems); !errors.Is(err, tt.err) {
				t.Errorf("got error %v, want %v", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.printed) || (out.String() == "") != (tt.printed == "") {
				t.Errorf("printed %q, want %q in it", out.String(), tt.printed)
			}
		})
	}
	if err := Report(closed{}, []Problem{warning}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got error %v, want %v", err, io.ErrClosedPipe)
	}
}

func TestPrintedProblemsOfRealMachineFit(t *testing.T) {
	h := healthy(t)
	h.want.Directories[0].Path = "/"
	h.want.Sockets = []string{"/var/" + strings.Repeat("long/", 18) + "socket"}
	for _, feature := range []Feature{Overlay, Namespaces, Bridge, Veth, NFTables} {
		h.broken[feature] = errNoDirectory
	}
	h.write(t, "proc/self/mountinfo", "")
	h.write(t, "proc/swaps", "Filename\n/dev/sda2\n")
	h.fs.Bavail, h.fs.Ffree = 0, 0
	h.remove(t, "dev/kmsg")
	h.remove(t, "dev/loop-control")
	var out strings.Builder
	if err := Print(&out, Run(t.Context(), h.want, h.Machine)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if count := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); count > width && !strings.Contains(line, " fix it: ") && !strings.Contains(line, "or: ") {
			t.Errorf("line of %d columns: %s", count, line)
		}
	}
}
