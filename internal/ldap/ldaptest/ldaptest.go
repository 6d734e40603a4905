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

// The base entry, and the account that can read everything.
const (
	BaseDN        = "dc=example,dc=com"
	AdminDN       = "cn=admin,dc=example,dc=com"
	AdminPassword = "the-admin-password"
)

// Server is a running slapd.
type Server struct {
	// Address serves ldap with StartTLS, and SecureAddress serves ldaps.
	Address, SecureAddress string
	// CAFile is the file of the CA that signed the server's certificate.
	CAFile string

	machine Machine
}

// Machine is a network namespace in which slapd can run.
type Machine interface {
	// Do runs a function in the network namespace. Sockets and processes that the function creates
	// are also in this namespace.
	Do(func() error) error
}

// thisMachine is the network namespace of the test.
type thisMachine struct{}

// Do implements Machine. It runs f in the test's own network namespace.
func (thisMachine) Do(f func() error) error { return f() }

// Start runs slapd with the entries in an LDIF text until the test ends. The BaseDN entry already
// exists. Members of a groupOfNames have a memberOf attribute, as in Active Directory. Only AdminDN
// can search.
func Start(t testing.TB, ldif string) *Server {
	t.Helper()
	return StartOn(t, thisMachine{}, ldif)
}

// StartOn is like Start, but runs slapd on another machine.
func StartOn(t testing.TB, machine Machine, ldif string) *Server {
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
	s := &Server{CAFile: authority.File, machine: machine}
	s.Address, s.SecureAddress = s.freeAddress(t), s.freeAddress(t)
	s.command(t, "slapadd", "-f", conf, "-l", filepath.Join(dir, "base.ldif"))
	s.run(t, conf)
	// Add the entries through the server, so that its memberof overlay processes the groups.
	s.command(t, "ldapadd", "-x", "-H", "ldap://"+s.Address, "-D", AdminDN, "-w", AdminPassword, "-f", filepath.Join(dir, "data.ldif"))
	return s
}

// Delete removes an entry.
func (s *Server) Delete(t testing.TB, dn string) {
	t.Helper()
	s.command(t, "ldapdelete", "-x", "-H", "ldap://"+s.Address, "-D", AdminDN, "-w", AdminPassword, dn)
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
	if err := s.machine.Do(slapd.Start); err != nil {
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
		return s.machine.Do(func() error {
			conn, err := net.Dial("tcp", s.Address)
			if err != nil {
				return err
			}
			return conn.Close()
		}) == nil
	})
}

func (s *Server) command(t testing.TB, name string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	command := exec.Command(program(name), args...)
	command.Stdout, command.Stderr = &output, &output
	err := s.machine.Do(command.Start)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, output.String())
	}
}

// program returns the path of a system administration program, which might not be in PATH.
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

func (s *Server) freeAddress(t testing.TB) (address string) {
	t.Helper()
	err := s.machine.Do(func() error {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		address = listener.Addr().String()
		return listener.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	return address
}
