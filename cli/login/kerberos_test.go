package login

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/service"
	"github.com/jcmturner/gokrb5/v8/spnego"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// realm is a Kerberos realm with the user alice and the service HTTP/127.0.0.1.
type realm struct{ dir string }

// newRealm starts a realm's key distribution center.
func newRealm(t *testing.T) realm {
	t.Helper()
	r := realm{t.TempDir()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	r.write(t, "krb5.conf", fmt.Sprintf(`[libdefaults]
  default_realm = EXAMPLE.TEST
  dns_lookup_kdc = false
  rdns = false
  udp_preference_limit = 1
[realms]
  EXAMPLE.TEST = {
    kdc = %s
  }
[domain_realm]
  127.0.0.1 = EXAMPLE.TEST
`, address))
	r.write(t, "kdc.conf", fmt.Sprintf(`[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = "127.0.0.1:%[1]s"
[realms]
  EXAMPLE.TEST = {
    database_module = files
    key_stash_file = %[2]s/stash
  }
[dbmodules]
  files = {
    db_library = db2
    database_name = %[2]s/principal
  }
`, port, r.dir))
	t.Setenv("KRB5_CONFIG", filepath.Join(r.dir, "krb5.conf"))
	t.Setenv("KRB5_KDC_PROFILE", filepath.Join(r.dir, "kdc.conf"))
	t.Setenv("KRB5CCNAME", "FILE:"+filepath.Join(r.dir, "tickets"))
	r.run(t, "", "kdb5_util", "create", "-s", "-P", "master")
	r.run(t, "", "kadmin.local", "-q", "addprinc -pw secret alice")
	r.run(t, "", "kadmin.local", "-q", "addprinc -randkey HTTP/127.0.0.1")
	r.run(t, "", "kadmin.local", "-q", "ktadd -k "+filepath.Join(r.dir, "keytab")+" HTTP/127.0.0.1")
	center := exec.Command("krb5kdc", "-n")
	center.Stdout, center.Stderr = os.Stderr, os.Stderr
	if err := center.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = center.Process.Kill()
		_ = center.Wait()
	})
	eventually.True(t, "the key distribution center listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return r
}

func (r realm) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r realm) run(t *testing.T, input string, command ...string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(input)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, output)
	}
}

// protect returns a handler that requests a ticket for the realm.
func (r realm) protect(t *testing.T, handler http.HandlerFunc) http.HandlerFunc {
	t.Helper()
	keys, err := keytab.Load(filepath.Join(r.dir, "keytab"))
	if err != nil {
		t.Fatal(err)
	}
	protected := spnego.SPNEGOKRB5Authenticate(handler, keys, service.DecodePAC(false))
	return protected.ServeHTTP
}

func TestLoginWithTicketOfKerberos(t *testing.T) {
	r, c := newRealm(t), newCluster(t)
	c.kerberos = r.protect(t, func(w http.ResponseWriter, request *http.Request) {
		c.challenge = request.FormValue("code_challenge")
		http.Redirect(w, request, request.FormValue("redirect_uri")+"?code=code", http.StatusFound)
	})
	kubeconfig := filepath.Join(t.TempDir(), "config")
	arguments := []string{"login", c.URL, "--certificate-authority=" + c.authority}

	if _, _, failure := c.run(t, kubeconfig, "", arguments...); !strings.Contains(failure, "run kinit") {
		t.Errorf("without a ticket: %s", failure)
	}
	r.run(t, "secret\n", "kinit", "alice")
	settings := os.Getenv("KRB5_CONFIG")
	t.Setenv("KRB5_CONFIG", os.DevNull)
	if _, _, failure := c.run(t, kubeconfig, "", arguments...); !strings.Contains(failure, `get a Kerberos ticket for "127.0.0.1"`) {
		t.Errorf("without the address of the realm: %s", failure)
	}
	t.Setenv("KRB5_CONFIG", settings)
	output, _, failure := c.run(t, kubeconfig, "", arguments...)
	if failure != "" || !strings.Contains(output, "Login successful") || c.attempts > 0 {
		t.Errorf("with a ticket: %s %s, %d passwords", output, failure, c.attempts)
	}
}

func TestSettingsThatCannotBeReadAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[realms]\n  EXAMPLE.TEST = { kdc = kdc.example.test }\n": "on its own line",
		"[libdefaults]\n  clockskew = soon\n":                     "read Kerberos settings",
	} {
		file := filepath.Join(t.TempDir(), "krb5.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if settings, err := kerberosSettings(file); err == nil || settings != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
