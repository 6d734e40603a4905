// Package ldaptest runs OpenLDAP's slapd for tests.
package ldaptest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// Who may read everything.
const (
	BaseDN        = "dc=example,dc=com"
	AdminDN       = "cn=admin,dc=example,dc=com"
	AdminPassword = "the-admin-password"
)

// Server is a slapd that runs.
type Server struct {
	// Address is where it serves ldap with StartTLS, and SecureAddress where ldaps.
	Address, SecureAddress string
	// CAFile is the authority of its certificate.
	CAFile string
}

// Start runs slapd with the entries of an LDIF text until the test ends. The entry of BaseDN is there already, and members of a
// groupOfNames have the attribute memberOf, as in Active Directory. Only AdminDN may search.
func Start(t testing.TB, ldif string) *Server {
	t.Helper()
	dir := t.TempDir()
	authority := certtest.New(t)
	certificate := authority.Issue(t, "ldap")
	files := map[string]string{
		"slapd.conf": fmt.Sprintf(configuration, authority.File, certificate.CertFile, certificate.KeyFile, dir),
		"base.ldif":  "dn: " + BaseDN + "\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: Example\n",
		"data.ldif":  ldif,
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(dir, "slapd.conf")
	command(t, "slapadd", "-f", conf, "-l", filepath.Join(dir, "base.ldif"))
	s := &Server{Address: freeAddress(t), SecureAddress: freeAddress(t), CAFile: authority.File}
	s.run(t, conf)
	// Through the server, so that the overlay sees the members.
	command(t, "ldapadd", "-x", "-H", "ldap://"+s.Address, "-D", AdminDN, "-w", AdminPassword, "-f", filepath.Join(dir, "data.ldif"))
	return s
}

// Delete removes an entry.
func (s *Server) Delete(t testing.TB, dn string) {
	t.Helper()
	command(t, "ldapdelete", "-x", "-H", "ldap://"+s.Address, "-D", AdminDN, "-w", AdminPassword, dn)
}

const configuration = `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
TLSCACertificateFile %s
TLSCertificateFile %s
TLSCertificateKeyFile %s
database mdb
suffix "` + BaseDN + `"
rootdn "` + AdminDN + `"
rootpw ` + AdminPassword + `
directory %s
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by anonymous auth by users read
`

func (s *Server) run(t testing.TB, conf string) {
	var log bytes.Buffer
	slapd := exec.Command(program("slapd"), "-d", "0", "-f", conf, "-h", fmt.Sprintf("ldap://%s/ ldaps://%s/", s.Address, s.SecureAddress))
	slapd.Stdout, slapd.Stderr = &log, &log
	if err := slapd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = slapd.Process.Kill()
		_ = slapd.Wait()
		if t.Failed() {
			t.Logf("slapd: %s", log.String())
		}
	})
	eventually.True(t, "slapd serves", func() bool {
		conn, err := net.Dial("tcp", s.Address)
		return err == nil && conn.Close() == nil
	})
}

func command(t testing.TB, name string, args ...string) {
	t.Helper()
	if output, err := exec.Command(program(name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, output)
	}
}

// program finds a program of the administrator, which not everyone has in the search path.
func program(name string) string {
	if path := filepath.Join("/usr/sbin", name); fileExists(path) {
		return path
	}
	return name
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
