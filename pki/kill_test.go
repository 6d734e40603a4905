package pki

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// childDir is an environment variable. If it is set, the test binary issues certificates in the
// directory that the variable specifies, until it is killed.
const childDir = "PKI_TEST_CHILD_DIR"

// runChild changes addresses and replaces keys continuously, so that Ensure is always writing.
func runChild(dir string) {
	spec := specIn(dir)
	for n := 0; ; n++ {
		spec.NodeHosts = []string{fmt.Sprintf("192.0.2.%d", n%200)}
		spec.APIHosts = spec.NodeHosts
		spec.APIURL = "https://" + spec.NodeHosts[0]
		spec.ReplaceKeys = n%3 == 0
		if _, err := Ensure(spec); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// TestKilledEnsureCanBeRepeated repeatedly starts a process that issues certificates, and kills it
// at many different points in time. The first process performs a host's first start. If the machine
// is too slow to complete it in the given time, each further process gets more time.
func TestKilledEnsureCanBeRepeated(t *testing.T) {
	dir := t.TempDir()
	spec := specIn(dir)
	authority := ""
	complete := map[Pair]bool{}
	for n := 0; n < 25 || authority == ""; n++ {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childDir+"="+dir)
		child.Stdout = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- child.Wait() }()
		select {
		case err := <-done:
			t.Fatalf("run %d: Ensure failed after a kill: %v", n, err)
		case <-time.After(time.Duration((20+n*37%400)*(1+n/25)) * time.Millisecond):
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-done

		for _, l := range leavesOf(spec) {
			if checkPair(t, l.files) {
				complete[l.files] = true
			} else if complete[l.files] {
				t.Errorf("run %d: %s is missing", n, l.files.Cert)
			}
		}
		now, err := os.ReadFile(filesOf(spec).CA.Cert)
		if err == nil && authority != "" && string(now) != authority {
			t.Fatalf("run %d: the authority was replaced", n)
		}
		authority = string(now)
	}
	ensure(t, spec)
	for _, l := range leavesOf(spec) {
		verify(t, l)
	}
	remaining, err := filepath.Glob(filepath.Join(spec.Dir, ".*.new"))
	if err != nil || len(remaining) > 1 {
		t.Errorf("temporary files %v, %v, want at most the file of the last kill", remaining, err)
	}
}

// checkPair checks that an existing certificate matches its key. It reports whether the certificate
// exists.
func checkPair(t *testing.T, files Pair) bool {
	t.Helper()
	if _, err := os.Stat(files.Cert); err != nil {
		return false
	}
	if _, err := tls.LoadX509KeyPair(files.Cert, files.Key); err != nil {
		t.Errorf("%s: %v", files.Cert, err)
	}
	return true
}
