package agent

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestMissingPartsOfPluginAreReported(t *testing.T) {
	const list = `{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "bridge"}, {"type": "flannel"}]}`
	for name, tt := range map[string]struct {
		files map[string]string
		want  string // part of the message; "" if nothing is missing
	}{
		"no file":                {nil, "has no CNI configuration, so pods get no network; install a network plugin"},
		"no program":             {map[string]string{"10.conflist": list}, `names the CNI plugin "flannel", which is not in `},
		"one plugin":             {map[string]string{"10.conf": `{"cniVersion": "1.0.0", "name": "n", "type": "bridge"}`}, ""},
		"file without a plugin":  {map[string]string{"10.conf": `{"cniVersion": "1.0.0", "name": "n"}`}, "correct the file"},
		"no JSON":                {map[string]string{"10.conflist": "plugins:"}, "correct the file"},
		"only the first is read": {map[string]string{"10.conf": `{"cniVersion": "1.0.0", "name": "n", "type": "bridge"}`, "20.conflist": list}, ""},
		"others are not read":    {map[string]string{"10.conflist.new": list}, "has no CNI configuration"},
		"a list without plugins": {map[string]string{"10.conflist": `{"cniVersion": "1.0.0", "name": "n", "plugins": []}`}, "correct the file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, programs := t.TempDir(), t.TempDir()
			for file, content := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(programs, "bridge"), nil, 0o755); err != nil {
				t.Fatal(err)
			}
			err := checkPlugin(dir, []string{t.TempDir(), programs})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestOtherNetworkHasOnlyTheAddressOfTheDNSServer(t *testing.T) {
	dir := t.TempDir()
	var note atomic.Value
	other := &OtherNetwork{
		ConfDir: dir, BinDirs: []string{dir}, FormerBridge: "slipway0", CheckInterval: 100 * time.Millisecond,
		DNSDevice: "slipway-dns", DNSIP: netip.MustParseAddr("169.254.20.10"),
	}
	other.Notes(func(text string) { note.Store(text) })
	t.Cleanup(func() {
		if err := Cleanup(context.Background(), leftovers); err != nil {
			t.Error(err)
		}
	})
	componenttest.Start(t, other.Run).WaitReady()
	noted := func(part string) func() bool {
		return func() bool {
			text, _ := note.Load().(string)
			return part == "" && text == "" || part != "" && strings.Contains(text, part)
		}
	}
	eventually.True(t, "note about the configuration", noted("has no CNI configuration"))
	if got := addresses("slipway-dns"); got != "169.254.20.10/32" {
		t.Errorf("address of the DNS device: %q", got)
	}
	if got := output(t, "nft", "list", "tables"); got != "" {
		t.Errorf("tables:\n%s", got)
	}

	output(t, "ip", "link", "del", "slipway-dns")
	eventually.Equal(t, "address of the DNS server", func() string { return addresses("slipway-dns") }, "169.254.20.10/32")

	for name, content := range map[string]string{"plugin": "", "10.conf": `{"cniVersion": "1.0.0", "name": "n", "type": "plugin"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "end of the note", noted(""))
	output(t, "ip", "link", "add", "slipway0", "type", "bridge")
	eventually.True(t, "note about the bridge", noted("the bridge slipway0 of the former network plugin remains"))
}
