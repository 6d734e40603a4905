package keypair

import (
	"os"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
)

func TestLoaderKeepsLastPairWhileFilesDoNotMatch(t *testing.T) {
	authority := certtest.New(t)
	first, second := authority.Issue(t, "first.example.com"), authority.Issue(t, "second.example.com")
	load := Loader(first.CertFile, first.KeyFile)
	current := func() string {
		t.Helper()
		pair, err := load(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.String()
	}
	number := func(pair certtest.Pair) string { return pair.Certificate.SerialNumber.String() }
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if got := current(); got != number(first) {
		t.Fatalf("served %s", got)
	}
	rename(second.KeyFile, first.KeyFile)
	if got := current(); got != number(first) {
		t.Errorf("with another key, the certificate is %s", got)
	}
	rename(second.CertFile, first.CertFile)
	if got := current(); got != number(second) {
		t.Errorf("with another pair, the certificate is %s", got)
	}
	if _, err := Loader(first.CertFile, first.CertFile)(nil); err == nil {
		t.Error("the first handshake with an unreadable pair returns no error")
	}
}
