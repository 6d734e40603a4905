package pki

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestKeysAreReplacedOnRequest(t *testing.T) {
	spec := newSpec(t)
	before := contents(t, spec.Dir)
	spec.ReplaceKeys = true
	ensure(t, spec)
	spec.ReplaceKeys = false
	after := contents(t, spec.Dir)
	remaining := map[string]bool{"ca.key": true, "frontproxy-ca.key": true, "master.etcd-ca.key": true, "service-signer.key": true,
		"serviceaccounts.private.key": true, "serviceaccounts.public.key": true}
	for name, content := range after {
		if strings.HasSuffix(name, ".key") && (content == before[name]) != remaining[name] {
			t.Errorf("%s is unchanged: %t, want %t", name, content == before[name], remaining[name])
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s was not removed", name)
		}
	}
	for _, l := range leavesOf(spec) {
		verify(t, l)
		for _, path := range l.files.files() {
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %v, %v, want a file", path, info.Mode(), err)
			}
		}
	}
	if issued := ensure(t, spec).Issued; len(issued) > 0 {
		t.Errorf("Issued of the next start: %v, want none", issued)
	}
}

func TestReadersGetMatchingPairs(t *testing.T) {
	spec := newSpec(t)
	pair := filesOf(spec).KubeletClient
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				cert, err := os.ReadFile(pair.Cert)
				if err != nil {
					t.Errorf("read certificate: %v", err)
					return
				}
				key, err := os.ReadFile(pair.Key)
				if err != nil {
					t.Errorf("read key: %v", err)
					return
				}
				if second, err := os.ReadFile(pair.Cert); err != nil || string(second) != string(cert) {
					continue // the files were replaced between the two reads
				}
				if _, err := tls.X509KeyPair(cert, key); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	spec.ReplaceKeys = true
	for range 2 {
		ensure(t, spec)
	}
	done.Store(true)
	readers.Wait()
}

func TestKilledReplacementIsCompleted(t *testing.T) {
	spec := newSpec(t)
	pair := filesOf(spec).KubeletServer
	before := contents(t, spec.Dir)
	// This is the state if the process is killed before the rename that installs the new pair.
	for path, mode := range map[string]os.FileMode{pair.Cert: public, pair.Key: secret} {
		if err := os.MkdirAll(pair.stage("old"), 0o700); err != nil {
			t.Fatal(err)
		}
		copyFile(t, path, filepath.Join(pair.stage("old"), filepath.Base(path)))
		if err := os.Chmod(filepath.Join(pair.stage("old"), filepath.Base(path)), mode); err != nil {
			t.Fatal(err)
		}
		if err := link(filepath.Join(filepath.Base(pair.stage("pair")), filepath.Base(path)), path); err != nil {
			t.Fatal(err)
		}
	}
	if err := pair.point(pair.stage("old")); err != nil {
		t.Fatal(err)
	}
	if _, err := tls.LoadX509KeyPair(pair.Cert, pair.Key); err != nil {
		t.Fatal(err)
	}
	if issued := ensure(t, spec).Issued; len(issued) > 0 {
		t.Errorf("Issued: %v, want none", issued)
	}
	after := contents(t, spec.Dir)
	for name, content := range before {
		if after[name] != content {
			t.Errorf("%s has changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, want %d", len(after), len(before))
	}
	if info, err := os.Lstat(pair.Key); err != nil || info.Mode() != secret {
		t.Errorf("the key is %v, %v, want a file that only its owner can read", info.Mode(), err)
	}
}
