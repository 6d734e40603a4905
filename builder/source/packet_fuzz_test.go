package source

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// FuzzPackets verifies that no response of a Git server to requests for references and objects can
// crash the builder or make it write outside the clone.
func FuzzPackets(f *testing.F) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	const capabilities = "\x00multi_ack side-band-64k ofs-delta shallow symref=HEAD:refs/heads/main agent=git/2"
	line := func(text string) string {
		const digits = "0123456789abcdef"
		n := len(text) + 4
		return string([]byte{digits[n>>12&15], digits[n>>8&15], digits[n>>4&15], digits[n&15]}) + text
	}
	refs := line("# service=git-upload-pack\n") + "0000" + line(commit+" HEAD"+capabilities+"\n") + line(commit+" refs/heads/main\n") + "0000"
	for _, pack := range []string{
		"", "0008NAK\n", line("shallow "+commit+"\n") + "0000" + "0008NAK\n" + line("\x01PACK\x00\x00\x00\x02\x00\x00\x00\x00") + "0000",
		"0008NAK\n" + line("\x03error") + "0000", "0008NAK\n" + line("\x01PACK\x00\x00\x00\x02\xff\xff\xff\xff") + "0000", "ffff", "0001", "0003x",
		"0008NAK\n" + line("\x01PACK\x00\x00\x00\x02\x00\x00\x00\x01\x95\x0ax\x9c\x03\x00\x00\x00\x00\x01") + "0000",
	} {
		f.Add(refs, pack)
	}
	for _, text := range []string{"", "0000", "fff0", line("ERR no") + "0000", line(commit + " refs/heads/../../x" + capabilities + "\n")} {
		f.Add(line("# service=git-upload-pack\n")+"0000"+text, "0008NAK\n")
	}
	var responses atomic.Pointer[[2]string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp := responses.Load()
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, resp[0])
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(w, resp[1])
	}))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, refs, pack string) {
		responses.Store(&[2]string{refs, pack})
		parent := t.TempDir()
		dir := filepath.Join(parent, "clone")
		g := Git{URL: server.URL + "/app.git", Forbidden: func(netip.Addr) bool { return false }, Limit: &Limit{Bytes: 1 << 20, Files: 100}, Out: io.Discard}
		if commit, err := g.Clone(t.Context(), dir); err == nil && commit.Hash.IsZero() {
			t.Error("the clone has no commit")
		}
		entries, err := os.ReadDir(parent)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.Name() != "clone" {
				t.Errorf("the server wrote %q outside the clone", entry.Name())
			}
		}
	})
}
