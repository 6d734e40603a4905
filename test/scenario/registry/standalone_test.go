package registry

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

func TestRegistryWithoutCluster(t *testing.T) {
	p := newProject(t)
	dir := t.TempDir()
	users, config := filepath.Join(dir, "users"), filepath.Join(dir, "config.yml")
	write := func(addr string) {
		t.Helper()
		content := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s/images}, delete: {enabled: true}}\nhttp: {addr: %q}\nauth: {htpasswd: {realm: r, path: %s}}\n", dir, addr, users)
		if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(p.direct()) // the cluster's registry already listens on this address
	if result := p.Slipway("registry", config); result.Code == 0 || !strings.Contains(result.Stderr, "slipway htpasswd --file "+users+" set USER") {
		t.Errorf("without users: %+v", result)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err == nil {
		err = os.WriteFile(users, fmt.Appendf(nil, "ann:%s\n", hash), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if result := p.Slipway("registry", config); result.Code == 0 || !strings.Contains(result.Stderr, "http.addr") || !strings.Contains(result.Stderr, "address already in use") {
		t.Errorf("start with a port in use: %+v", result)
	}
	write(p.Address.String() + ":5001")
	process := p.StartSlipway(nil, "registry", config)
	image, _ := image(t, "alone")
	to := fmt.Sprintf("docker://%s:5001/team/deep/app:v1", p.Address)
	p.WaitFor("a push to the separate registry", func(context.Context) error {
		_, err := p.try("copy", "--dest-tls-verify=false", "--dest-creds", "ann:secret", "oci:"+image, to)
		return err
	})
	if _, err := p.try("copy", "--src-tls-verify=false", "--src-creds", "ann:secret", to, "oci:"+filepath.Join(dir, "copy")); err != nil {
		t.Error(err)
	}
	if _, err := p.try("copy", "--src-tls-verify=false", "--src-no-creds", to, "oci:"+filepath.Join(dir, "other")); err == nil {
		t.Error("a client without credentials pulls")
	}
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("exit after the signal: %v", err)
	}
}
